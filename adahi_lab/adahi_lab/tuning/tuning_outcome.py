# SPDX-License-Identifier: Apache-2.0
"""The output of a search: the best trial's checkpoints, with a calibration for other verbs."""

from __future__ import annotations

import shutil
from dataclasses import asdict

import yaml
from optuna.trial import FixedTrial

from adahi_lab.calibration.calibrate import node_parameters
from adahi_lab.evaluation.loaded_policies import Bench, PolicyFiles
from adahi_lab.figures import Figures
from adahi_lab.methods.methods import METHODS
from adahi_lab.tuning.search import Row, efficient
from adahi_lab.tuning.trial import CHECKPOINTS, COSTS, TRAINED, Ground, Setting, suggested
from adahi_ros.core.written_files import replacing

BEST = "best"


def setting_of(row: Row, ground: Ground) -> Setting:
    """Return the settings of a trial."""
    return suggested(FixedTrial(row.params), ground.space)


def best_of(rows: list[Row]) -> Row | None:
    """Return the trial with the largest objective, the first of equals; None where none was evaluated."""
    judged = [row for row in rows if row.value is not None]
    return max(judged, key=lambda row: (row.value, -row.number), default=None)


def keep_best(row: Row, ground: Ground) -> str:
    """Write checkpoints, calibration and recipe of a trial into the folder `best`; return its method."""
    folder, setting = ground.out / BEST, setting_of(row, ground)
    partial = folder.with_name(f".{BEST}.partial")
    for left in (partial, folder):
        shutil.rmtree(left, ignore_errors=True)
    trained = ground.folder(row.attempt) / CHECKPOINTS
    shutil.copytree(trained if ground.space.train else ground.base, partial / CHECKPOINTS)
    if ground.space.train:
        recipe = yaml.safe_dump(ground.space.plain_with(setting.values), sort_keys=False)
        with replacing(partial / "recipe.yaml") as path:
            path.write_text(f"# Trial {row.number} of: {ground.command}\n{recipe}")
        shutil.copy2(ground.folder(row.attempt) / TRAINED, partial)
    partial.rename(folder)
    policies = PolicyFiles(folder / CHECKPOINTS, "onnxruntime").load()
    calibration = setting.calibrated(ground.calibration, policies)
    gate, threshold = METHODS[setting.name].threshold(Bench(ground.task, policies, calibration))
    node = node_parameters(ground.task, str((folder / CHECKPOINTS / "draft").resolve()), folder)
    file = folder / f"{ground.calibration.task}.yaml"
    calibration.save(file, gate, ground.command, {**node, "gate": {"name": gate, "threshold": threshold}})
    return setting.name


def search_figures(rows: list[Row], ground: Ground) -> Figures:
    """Return the figures of a search as they are written."""
    best = best_of(rows)
    return {
        "task": ground.calibration.task,
        "command": ground.command,
        "price": ground.space.price,
        "episodes": ground.space.episodes,
        "best": None if best is None else best.number,
        "efficient": sorted(efficient(rows)),
        "costs": {name: sum(row.costs[name] for row in rows) for name in COSTS},
        "trials": [asdict(row) for row in rows],
    }

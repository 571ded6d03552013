"""Learning between episodes, in simulation: a robot runs, learns from what was corrected, and runs again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from adahi_ros.evaluation.bench import PolicyFiles
from adahi_ros.evaluation.calibrate import calibrate
from adahi_ros.evaluation.corrections import MOST, Corrections, Reservoir, corrected_episodes
from adahi_ros.evaluation.episodes import evaluation_episodes, lesson_episodes
from adahi_ros.evaluation.evaluate import Comparison, outcome_figures, play_all
from adahi_ros.evaluation.learn import (
    DRAFT,
    LearningConfig,
    Lessons,
    copy_policies,
    update,
    write_draft,
)
from adahi_ros.evaluation.methods import gated
from adahi_ros.evaluation.staging import StagedFolder
from adahi_ros.files import parse_json, replacing
from adahi_ros.gates.parameter_file import Calibration
from adahi_ros.networks.fitting import Run
from adahi_ros.policy.vqbet.checkpoint import load_checkpoint
from adahi_ros.policy.vqbet.network import VQBeT
from adahi_ros.policy.vqbet.torch_backend import load_network

FIRST_EPISODE = 700_000  # of the lessons: those before are of correctors, gates and acceptance rules
STATE = "learning.training.safetensors"
FIXED, RATED, ALONE = "at_threshold", "at_rate", "draft"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Rounds:
    """How a robot learns in rounds.

    Attributes:
        rounds: so many.
        episodes: of each, to learn from.
        ask: a method that drafts, by name: when the target is asked.
        explore: another by which it is in the episodes to learn from; '' for the same.
        rate: transmission rate that gates are set to before each round; None leaves the thresholds that the
            first draft was calibrated to.
        evaluated: episodes that each draft is looked at in, the same after every round; 0 for none.
        calibrated: episodes by which a threshold is found.
        most: corrections that are kept, see `Reservoir`.
        seed: of everything.

    Raises:
        ValueError: a value is out of range; names field, value and range.
    """

    rounds: int = 10
    episodes: int = 20
    ask: str = "adahi"
    explore: str = ""
    rate: float | None = None
    evaluated: int = 100
    calibrated: int = 25
    most: int = MOST
    seed: int = 0

    def __post_init__(self) -> None:
        for name, smallest in (
            ("rounds", 1),
            ("episodes", 1),
            ("evaluated", 0),
            ("calibrated", 1),
            ("most", 1),
            ("seed", 0),
        ):
            if getattr(self, name) < smallest:
                raise ValueError(f"{name}: {getattr(self, name)}, must be at least {smallest}")
        if self.rate is not None and not 0.0 < self.rate < 1.0:
            raise ValueError(f"rate: {self.rate}, must be between 0 and 1")
        gated(self.ask)
        gated(self.teaching)

    @property
    def teaching(self) -> str:
        """The method by which the target is asked in the episodes to learn from."""
        return self.explore or self.ask


def learn_in_rounds(
    task: str,
    begin: Path,
    out: Path,
    lessons: Lessons,
    calibration: Calibration,
    how: Rounds,
    config: LearningConfig,
    command: str,
    workers: int = 1,
    say: Say = lambda line: None,
) -> dict[str, Any]:
    """Have a draft learn in rounds, into a folder; return figures of every round, the first before any.

    The folder changes only once all is done; what was stopped goes on after its last whole round.

    Args:
        task: what `make` takes.
        begin: folder of tokenizer, draft and target.
        out: folder to write: all of that, with the draft that has learned.
        lessons: what the draft had learned from.
        calibration: of the draft in `begin`.
        how: often, and where it asks.
        config: how it learns.
        command: noted in the checkpoint.
        workers: processes that run episodes.
        say: told how it goes.

    Raises:
        ValueError: something does not fit; names it.
    """
    staged = StagedFolder(out)
    checkpoint = load_checkpoint(begin / DRAFT)  # raises before anything is written
    staged.begin()
    folder = staged.folder
    copy_policies(begin, folder)
    recipe = {
        "task": task,
        "draft": checkpoint.digest(),
        "how": asdict(how),
        "config": {name: str(value) for name, value in asdict(config).items()},
    }
    model, reservoir = load_network(checkpoint), Reservoir(how.most, how.seed)
    figures: list[dict[str, Any]] = []
    state = folder / STATE
    if state.is_file():
        figures = _restore(state, model, reservoir, recipe)
        say(f"goes on after round {len(figures) - 1}")
    note = {**checkpoint.training, "learned": command}
    files = PolicyFiles(folder, "onnxruntime")
    for number in range(len(figures), how.rounds + 1):
        write_draft(folder, model, note)
        present = _calibrated(task, files, calibration, how, workers)
        found = {"round": number, **_looked_at(task, files, calibration, present, how, workers)}
        if number < how.rounds:
            bench = Comparison(task, files, present, how.seed).bench()
            episodes = lesson_episodes(how.episodes, FIRST_EPISODE + number * how.episodes)
            corrections, _ = corrected_episodes(bench, gated(how.teaching), how.seed, episodes)
            reservoir.add(corrections)
            assert reservoir.kept is not None
            best = figures[-1]["update"]["held_out"]["best"] if figures else None
            learned = update(model, lessons, reservoir.kept, config, Run(how.seed + number), best)
            model = learned.model
            found["update"] = {"new": len(corrections), **learned.figures}
        figures.append(found)
        _save(state, model, reservoir, recipe, figures)
        say(line_of(found))
    staged.finish()
    return {"task": task, "how": asdict(how), "config": recipe["config"], "rounds": figures}


def _calibrated(
    task: str, files: PolicyFiles, calibration: Calibration, how: Rounds, workers: int
) -> Calibration:
    """Return a calibration of the present draft: to the rate, or with the thresholds that there are."""
    policies = files.load()
    if how.rate is None:
        return replace(calibration, draft=policies.draft.digest, target=policies.target.digest)
    shape = calibration.smoothing, calibration.normalization, calibration.draft_temperature
    return calibrate(
        task,
        files,
        how.rate,
        how.seed,
        how.calibrated,
        *shape,
        workers=workers,
        methods=[how.ask, how.teaching],
    )


def _looked_at(
    task: str,
    files: PolicyFiles,
    first: Calibration,
    present: Calibration,
    how: Rounds,
    workers: int,
) -> dict[str, Any]:
    """Return figures of the present draft: by the first threshold, at the rate, and alone."""
    found: dict[str, Any] = {}
    if not how.evaluated:
        return found
    wanted = [(FIXED, first, how.ask), (ALONE, first, "draft")]
    if how.rate is not None:
        wanted.insert(1, (RATED, present, how.ask))
    for name, calibration, method in wanted:
        comparison = Comparison(task, files, calibration, how.seed)
        episodes = evaluation_episodes(how.evaluated)
        outcome = play_all(comparison, [method], episodes, workers)[method]
        found[name] = outcome_figures(outcome)
        gate = gated(method).gate
        found[name]["threshold"] = calibration.thresholds.get(gate)
    return found


def line_of(found: dict[str, Any]) -> str:
    """Return what is said of a round."""
    parts = [f"round {found['round']}"]
    for name in (FIXED, RATED, ALONE):
        if name in found:
            each = found[name]
            parts.append(
                f"{name.replace('_', ' ')} {each['success_rate']:.2f}, {each['calls_per_episode']:.1f} calls"
            )
    if "update" in found:
        told = found["update"]
        parts.append(f"{told['new']} replies, {told['why'] or 'learned'}")
    return "; ".join(parts)


def _save(
    path: Path, model: VQBeT, reservoir: Reservoir, recipe: dict[str, Any], figures: list[dict[str, Any]]
) -> None:
    tensors = {f"model.{name}": value.contiguous() for name, value in model.state_dict().items()}
    if reservoir.kept is not None:
        for name in Corrections.arrays():
            tensors[f"kept.{name}"] = torch.from_numpy(np.ascontiguousarray(getattr(reservoir.kept, name)))
        tensors["numbers"] = torch.from_numpy(reservoir.numbers)
    meta = {"recipe": recipe, "seen": reservoir.seen, "figures": figures}
    with replacing(path) as partial:
        save_file(tensors, partial, metadata={"adahi": json.dumps(meta)})


def _restore(path: Path, model: VQBeT, reservoir: Reservoir, recipe: dict[str, Any]) -> list[dict[str, Any]]:
    """Go on from a saved state; return the figures of the rounds that were."""
    try:
        with safe_open(path, framework="pt") as file:
            meta = parse_json((file.metadata() or {})["adahi"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        figures, seen, made_by = list(meta["figures"]), int(meta["seen"]), meta["recipe"]
        if made_by == json.loads(json.dumps(recipe)):
            weights = {name: tensors[f"model.{name}"] for name in model.state_dict()}
            model.load_state_dict(weights)
            if "numbers" in tensors:
                kept = Corrections(*(tensors[f"kept.{name}"].numpy() for name in Corrections.arrays()))
                reservoir.restore(kept, tensors["numbers"].numpy(), seen)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: not a saved run ({error}); delete it to start anew") from None
    if made_by != json.loads(json.dumps(recipe)):
        raise ValueError(f"{path}: from a run with other settings; delete it to start anew")
    return figures

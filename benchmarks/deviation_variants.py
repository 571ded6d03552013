# SPDX-License-Identifier: Apache-2.0
"""Which form of action deviation ranks rejections best: all of them on one log of hybrid inference.

    .venv/bin/python benchmarks/deviation_variants.py [TASK] [--episodes N] [--json FILE]

For each normalisation, each average (of executed or of drafted actions) and each smoothing factor: Spearman's
correlation of the deviation with the rejection of the primary code over single actions, and R2 of both fits
over twenty equal-count bins.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from adahi_ros.core.assets import asset
from adahi_ros.gates.gate_config import NORMALIZATIONS, ControllerConfig, ThresholdedGate
from adahi_ros.lab.calibration.calibrate import SMOOTHINGS, measure
from adahi_ros.lab.evaluation.episodes import calibration_episodes
from adahi_ros.lab.evaluation.rollout import rollout
from adahi_ros.lab.tasks import make
from adahi_ros.policies.backends import load_policy
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier


def main(
    task: Annotated[str, typer.Argument(help="The task, such as 'ball'.")] = "ball",
    episodes: Annotated[int, typer.Option(min=1, help="Episodes of hybrid inference.")] = 600,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random draw.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Compare the forms of action deviation."""
    folder = asset(f"checkpoints/{task}")
    draft, target = (load_policy(folder / name, "onnxruntime") for name in ("draft", "target"))
    controller = Controller(draft, ControllerConfig(ThresholdedGate("always")))
    numbers = calibration_episodes(episodes)
    executed = rollout(make(task), controller, TargetVerifier(target), seed, numbers)
    logs = {"executed": executed, "drafted": replace(executed, action=executed.draft_action)}
    scale = draft.action_scale
    figures = []
    for normalization in sorted(NORMALIZATIONS):
        for averaged, log in logs.items():
            for smoothing in SMOOTHINGS:
                curve = measure(log, scale, smoothing, normalization)
                figures.append(
                    {
                        "normalization": normalization,
                        "average_of": averaged,
                        "smoothing": smoothing,
                        "rank_correlation": curve.rank_correlation,
                        "linear_r2": curve.linear.r2,
                        "logarithmic_r2": curve.logarithmic.r2,
                    }
                )
    table = Table(title=f"{task}, {int(executed.active.sum()):,} actions of hybrid inference")
    for heading in figures[0]:
        table.add_column(heading.replace("_", " "), justify="right")
    for row in figures:
        table.add_row(*(f"{value:.3f}" if isinstance(value, float) else value for value in row.values()))
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps({"task": task, "seed": seed, "variants": figures}, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)

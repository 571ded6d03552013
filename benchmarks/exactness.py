# SPDX-License-Identifier: Apache-2.0
"""How far what comes back from the verifier is from the target's distribution, behind each gate.

    .venv/bin/python benchmarks/exactness.py [TASK] [--episodes N] [--json FILE]

At every observation of hybrid inference behind a gate, by all combinations of codes and not by sampling:
total variation from the target's distribution of codes, of what comes back when the gate asks (the mean and
the 95th percentile over requests), of what is executed, asked or not, and of what is drafted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from adahi_ros.core.assets import asset
from adahi_ros.gates.parameter_file import load_calibration
from adahi_ros.lab.evaluation.episodes import evaluation_episodes
from adahi_ros.lab.evaluation.exactness import measure_exactness
from adahi_ros.lab.evaluation.loaded_policies import Bench, PolicyFiles
from adahi_ros.lab.reporting.tables import narrow_table, number

COMPARED = ("always", "random", "deviation", "uncertainty", "never")
ROUNDING = 1e-6  # what is smaller is shown as a power of ten


def shown(distance: float | None) -> str:
    """Write a distance; one of rounding is not to look like none."""
    return f"{distance:.0e}" if distance is not None and 0.0 < distance < ROUNDING else number(distance)


def main(
    task: Annotated[str, typer.Argument(help="One with shipped policies.")] = "ball",
    episodes: Annotated[int, typer.Option(min=1, help="Behind each gate.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random draw.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Print how exact hybrid inference is behind each gate, at the calibrated thresholds."""
    calibration = load_calibration(asset(f"config/{task}.yaml"))
    bench = Bench(task, PolicyFiles(asset(f"checkpoints/{task}"), "onnxruntime").load(), calibration)
    figures = {}
    for name in COMPARED:
        config = calibration.controller(name)
        found = measure_exactness(bench, config.trigger, config, seed, evaluation_episodes(episodes))
        figures[name] = {"looks_at_the_draw": not config.trigger.gate.blind, **found.figures()}
    rounded = max(each["rounded_largest"] for each in figures.values())
    table = narrow_table(
        f"{task}, {episodes} episodes: total variation from the target",
        ("gate", "looks at\nthe draw"),
        ("asks", "returned", "p95", "executed", "drafted"),
        caption=f"16-bit counts change a draft's distribution by {rounded:.0e} at most",
    )
    for name, each in figures.items():
        distances = (each[what] for what in ("returned", "returned_p95", "executed", "drafted"))
        looks = "yes" if each["looks_at_the_draw"] else "no"
        table.add_row(name, looks, number(each["asked"]), *map(shown, distances))
    Console().print(table)
    if json_file is not None:
        values = {"task": task, "seed": seed, "episodes": episodes, "gates": figures}
        json_file.write_text(json.dumps(values, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)

# SPDX-License-Identifier: Apache-2.0
"""Compares a Kalman filter of past actions with the last action as predictions of demonstrations.

    .venv/bin/python benchmarks/kalman_prediction.py [--tasks T,T,...] [--episodes N] [--json FILE]

Root mean square, in action scales: with a constant velocity of actions, and with half of a change kept. Each
uses the best of several noise ratios on the same demonstrations.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from adahi_ros.core.trajectories import Trajectories
from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.lab.tasks.demonstrations import NOISE, collect_parallel
from adahi_ros.proposers.kalman import KNOWN, VelocityFilter

DRIVES = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 16.0, 100.0)
KEPT = {"constant velocity": 1.0, "half is kept": 0.5}


def padded(data: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """Return actions in their scales, (T, E, A), zero past the ends, and which are before them, (T, E)."""
    scale = data.actions.std(axis=0)
    spans = list(data.spans())
    longest = max(end - start for start, end in spans)
    actions = np.zeros((longest, len(spans), data.actions.shape[1]))
    there = np.zeros((longest, len(spans)), dtype=bool)
    for episode, (start, end) in enumerate(spans):
        actions[: end - start, episode] = data.actions[start:end] / scale
        there[: end - start, episode] = True
    return actions, there


def root_mean_square(errors: np.ndarray, there: np.ndarray) -> float:
    """Of (T, E, A), from the step on from which a filter knows the motion."""
    return float(np.sqrt(np.square(errors[KNOWN:][there[KNOWN:]]).mean()))


def filtered(actions: np.ndarray, there: np.ndarray, kept: float, drive: float) -> float:
    """Return the error of a filter."""
    motion = VelocityFilter(*actions.shape[1:], kept, drive, 1.0)
    errors = np.zeros_like(actions)
    for step, (now, which) in enumerate(zip(actions, there, strict=True)):
        errors[step] = motion.predict()[0] - now
        motion.update(now, which)
    return root_mean_square(errors, there)


def main(
    tasks: Annotated[str, typer.Option(help="Separated by commas.")] = "ball,metaworld,kitchen",
    episodes: Annotated[int, typer.Option(min=1, help="Demonstrations of each.")] = 100,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random draw.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Print the error of each prediction."""
    found: dict[str, dict[str, float]] = {}
    table = narrow_table(
        "next action, root mean square in action scales", ("task",), ("last action", *KEPT, "steps")
    )
    for task in tasks.split(","):
        recorded = collect_parallel(task, episodes, seed, NOISE, workers, lambda done, kept: None)
        actions, there = padded(recorded.trajectories)
        changes = np.diff(actions, axis=0, prepend=0.0)
        found[task] = {"last action": root_mean_square(changes, there)}
        for name, kept in KEPT.items():
            found[task][name] = min(filtered(actions, there, kept, drive) for drive in DRIVES)
        table.add_row(task, *map(number, found[task].values()), str(int(there.sum())))
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)

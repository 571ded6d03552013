# SPDX-License-Identifier: Apache-2.0
"""The success of an expert in a suite of LIBERO from the benchmark's own states, by task.

    .venv/bin/python benchmarks/libero_expert.py [SUITE] [--episodes N] [--noise SHARE]

An episode of each task from each of the first states, without and with noise on the executed actions.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.lab.tasks.demonstrations import Demonstrator
from adahi_ros.lab.tasks.libero.expert import LiberoGoalExpert
from adahi_ros.lab.tasks.libero.scene_files import SUITE
from adahi_ros.lab.tasks.libero.suites import LiberoSpatialExpert, LiberoStates

TASKS = 10


def finished(suite: str, seed: int, episodes: int, noise: float) -> tuple[Any, float]:
    """Return the task after so many of the expert's episodes, and its control steps a second."""
    task = LiberoStates(suite)
    expert = LiberoSpatialExpert() if suite == "libero_spatial" else LiberoGoalExpert()
    demonstrator = Demonstrator(expert, task.spec, noise)
    task.reset(seed, range(episodes))
    demonstrator.reset(seed, range(episodes))
    before = time.process_time()
    while not task.done.all():
        task.step(demonstrator.act(task)[1])
    return task, float(task.steps.sum()) / (time.process_time() - before)


def main(
    suite: Annotated[str, typer.Argument(help="libero_goal, libero_goal_swap or libero_spatial.")] = SUITE,
    episodes: Annotated[int, typer.Option(min=TASKS, help="Episodes of all tasks together.")] = 100,
    noise: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of half the range.")] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Of furniture and noise.")] = 0,
) -> None:
    """Print the success of the expert, and the length of its successful episodes."""
    runs = [finished(suite, seed, episodes, share) for share in (0.0, noise)]
    headings = ["success", "steps", f"success, noise {noise:g}", "steps"]
    table = narrow_table(f"The expert of {suite} from the benchmark's states", ["task"], headings)
    names = runs[0][0].sentences[:TASKS]
    for row, name in enumerate([*names, "all"]):
        cells = []
        for task, _ in runs:
            of_it = np.arange(episodes) % TASKS == row if row < TASKS else np.ones(episodes, dtype=bool)
            kept = of_it & task.success
            steps = task.steps[kept].mean() if kept.any() else np.nan
            cells += [number(float(task.success[of_it].mean()), 2), number(float(steps), 0)]
        table.add_row(name, *cells)
    console = Console()
    console.print(table)
    console.print(f"{runs[0][1]:.0f} control steps a second of processor time, the expert included")


if __name__ == "__main__":
    typer.run(main)

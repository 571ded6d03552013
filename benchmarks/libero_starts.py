# SPDX-License-Identifier: Apache-2.0
"""How well the things' places at the start tell the task in LIBERO's suites.

    .venv/bin/python benchmarks/libero_starts.py    # needs requirements/libero.txt

For each of the benchmark's 500 states of a suite: is the nearest other state one of the same task? A state is
the places of all things by their names; a thing that is absent is far away. In LIBERO-Spatial the names show
which of two bowls is wanted (`_1`), so there is also a row without their numbers: the nearer to the robot is
first.
"""

from __future__ import annotations

import numpy as np
import typer
from rich.console import Console
from scipy.spatial.distance import cdist

from adahi_ros.cli.terminal import job_bar
from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.lab.tasks.libero.convert import TASKS, open_library

SUITES = ("libero_goal", "libero_spatial", "libero_object")
BOWLS = ("akita_black_bowl_1", "akita_black_bowl_2")
ABSENT_M = 10.0


def places(suite_name: str, number_of_task: int) -> dict[str, np.ndarray]:
    """Return where each thing starts, (50, 3) m, by name."""
    environment, suite = open_library(number_of_task, suite_name)
    states, model = suite.get_task_init_states(number_of_task), environment.sim.model
    found = {}
    for name, thing in environment.env.objects_dict.items():
        first = 1 + model.get_joint_qpos_addr(thing.joints[0])[0]  # after the time
        found[name] = states[:, first : first + 3]
    environment.close()
    return found


def without_numbers(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the same with the two bowls in the order of their distance from the robot."""
    bowls = np.stack([found[name] for name in BOWLS])
    order = np.argsort(bowls[:, :, 0], axis=0)[:, :, None]
    return {**found, **dict(zip(BOWLS, np.take_along_axis(bowls, order, axis=0), strict=True))}


def named_by_start(tasks: list[dict[str, np.ndarray]]) -> float:
    """Return the share of states with a nearest other one of the same task."""
    names = sorted(set().union(*tasks))
    count = len(next(iter(tasks[0].values())))
    absent = np.full((count, 3), ABSENT_M)
    states = np.concatenate([np.hstack([task.get(name, absent) for name in names]) for task in tasks])
    labels = np.repeat(np.arange(len(tasks)), count)
    apart = cdist(states, states)
    np.fill_diagonal(apart, np.inf)
    return float((labels[apart.argmin(axis=1)] == labels).mean())


def main() -> None:
    """Print the table."""
    found: dict[str, list[dict[str, np.ndarray]]] = {}
    with job_bar("tasks", len(SUITES) * TASKS) as update:
        for row, suite in enumerate(SUITES):
            found[suite] = []
            for task in range(TASKS):
                found[suite].append(places(suite, task))
                update(completed=row * TASKS + task + 1)
    found["libero_spatial, bowls without numbers"] = list(map(without_numbers, found["libero_spatial"]))
    table = narrow_table("The nearest start is of the same task", ["suite"], ["share", "chance"])
    for suite, tasks in sorted(found.items()):
        table.add_row(suite, number(named_by_start(tasks), 2), number(1.0 / TASKS, 2))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)

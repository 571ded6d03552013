# SPDX-License-Identifier: Apache-2.0
"""The success of the library's scripted policies in MT10 or MT50, by task.

    .venv/bin/python benchmarks/metaworld_expert.py metaworld_10 [--episodes N] [--seed SEED]

The episodes are those that `adahi train policy TASK` records: the hand is disturbed, and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.lab.tasks import TASKS, make, make_expert
from adahi_ros.lab.tasks.demonstrations import BATCH_EPISODES, Demonstrator
from adahi_ros.lab.tasks.metaworld import MetaWorld


def play(world: MetaWorld, demonstrator: Demonstrator, seed: int, numbers: Sequence[int]) -> None:
    """Run these episodes of the expert."""
    world.reset(seed, numbers)
    demonstrator.reset(seed, numbers)
    while not world.done.all():
        world.step(demonstrator.act(world)[1])


def main(
    task: Annotated[str, typer.Argument(help="metaworld_10, metaworld_50 or metaworld.")],
    episodes: Annotated[int, typer.Option(min=1, help="Of all tasks together.")] = 1500,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random draw.")] = 0,
) -> None:
    """Print the success of each task, the lowest first."""
    by_task: defaultdict[str, list[bool]] = defaultdict(list)
    world = make(task) if task in TASKS else None
    if not isinstance(world, MetaWorld):
        raise typer.BadParameter(f"task: {task!r}, must be metaworld, metaworld_10 or metaworld_50")
    demonstrator = Demonstrator(make_expert(task), world.spec, 0.0)
    for start in range(0, episodes, BATCH_EPISODES):
        play(world, demonstrator, seed, range(start, min(start + BATCH_EPISODES, episodes)))
        for errand, success in zip(world.errands, world.success, strict=True):
            by_task[errand.policy].append(bool(success))
    rows = sorted((float(np.mean(each)), name) for name, each in by_task.items())
    table = narrow_table(
        f"The expert of {task}, {episodes} episodes, seed {seed}", ["task"], ["success", "of"]
    )
    for share, name in rows:
        table.add_row(name, number(share, 2), str(len(by_task[name])))
    every = [each for results in by_task.values() for each in results]
    table.add_row("all", number(float(np.mean(every))), str(len(every)))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)

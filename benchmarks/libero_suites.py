# SPDX-License-Identifier: Apache-2.0
"""The shipped policies of libero_goal in the perturbed suites of LIBERO-PRO, for which they were not trained.

    .venv/bin/adahi lab libero convert --suite libero_goal_swap    # and _lan, _task
    .venv/bin/python benchmarks/libero_suites.py [--methods A,B] [--episodes N]

Things or furniture change places (`swap`), instructions are paraphrased (`lan`), or goals are others
(`task`). The expert of LIBERO-Goal acts in the first two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from adahi_lab.cli.output import job_bar
from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.evaluate import Comparison, Run, play
from adahi_lab.evaluation.metrics import wilson_interval
from adahi_lab.methods.methods import METHODS
from adahi_lab.reporting.tables import narrow_table, number
from adahi_lab.tasks.libero.expert import LiberoGoalExpert
from adahi_lab.tasks.libero.scene_files import PERTURBED, SUITE
from adahi_lab.tasks.libero.suites import LiberoStates

EXPERT = "expert"


@dataclass(frozen=True)
class InSuite(Comparison):
    """A comparison in another suite.

    Attributes:
        suite: one of `SUITES` on the table of LIBERO-Goal.
    """

    suite: str = SUITE

    def world(self) -> LiberoStates:
        """See `Comparison`."""
        return LiberoStates(self.suite)


def of_expert(suite: str, seed: int, episodes: range) -> np.ndarray:
    """Return which episodes the expert does, (E,) bool."""
    world, expert = LiberoStates(suite), LiberoGoalExpert()
    world.reset(seed, episodes)
    while not world.done.all():
        world.step(expert.act(world))
    return world.success


def main(
    methods: Annotated[str, typer.Option(help="Separated by commas.")] = "plan_1,best",
    episodes: Annotated[int, typer.Option(min=10, help="Of each suite.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Of the furniture and of all draws.")] = 0,
) -> None:
    """Print the success in each suite."""
    names, numbers = methods.split(","), evaluation_episodes(episodes)
    shipped = Comparison.shipped(SUITE, seed)
    title = f"LIBERO-Goal and its perturbed suites, {episodes} episodes each"
    table = narrow_table(title, ["suite", "method"], ["success", "95 %"])
    suites = (SUITE, *PERTURBED)
    with job_bar("runs", len(suites) * (1 + len(names))) as update:
        done = 0
        for suite in suites:
            compared = InSuite(**vars(shipped), suite=suite)
            for name in (EXPERT, *names):
                done += 1
                if name == EXPERT and suite == "libero_goal_task":
                    continue
                if name == EXPERT:
                    success = of_expert(suite, seed, numbers)
                else:
                    success = play(Run(METHODS[name], compared, numbers)).success
                low, high = wilson_interval(int(success.sum()), episodes)
                table.add_row(suite, name, number(float(success.mean()), 2), f"{low:.2f}-{high:.2f}")
                update(completed=done)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)

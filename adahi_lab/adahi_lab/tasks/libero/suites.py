# SPDX-License-Identifier: Apache-2.0
"""Other suites with one scene for ten tasks, from the benchmark's states, for evaluation alone.

LIBERO-PRO (Zhou et al., 2025) perturbs LIBERO-Goal: furniture or things change places, instructions are
paraphrased, or goals are others. In LIBERO-Spatial the scene shows the task: the wanted bowl's place.
"""

from __future__ import annotations

from adahi_lab.tasks.libero.goal import LiberoGoalStates
from adahi_lab.tasks.libero.scene_files import SUITES


class LiberoStates(LiberoGoalStates):
    """A suite's table from its own states; the rest as `LiberoGoal`.

    Args:
        suite: one of `SUITES`.

    Raises:
        ValueError: no such suite, or its scene has not been converted; the message has the command.
    """

    def __init__(self, suite: str) -> None:
        if suite not in SUITES:
            raise ValueError(f"suite: {suite!r}, must be one of {', '.join(SUITES)}")
        self.suite = suite
        super().__init__()

# SPDX-License-Identifier: Apache-2.0
"""Other suites with one scene for ten tasks, from the benchmark's states, for evaluation alone.

LIBERO-PRO (Zhou et al., 2025) perturbs LIBERO-Goal: furniture or things change places, instructions are
paraphrased, or goals are others. In LIBERO-Spatial the scene shows the task: the wanted bowl's place.
"""

from __future__ import annotations

import numpy as np

from adahi_ros.lab.tasks.libero.expert import BOWL, LiberoGoalExpert
from adahi_ros.lab.tasks.libero.goal import LiberoGoalStates
from adahi_ros.lab.tasks.libero.scene_files import SUITES
from adahi_ros.lab.tasks.libero.skills import Scene, Wish, carried


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


class LiberoSpatialExpert(LiberoGoalExpert):
    """Puts the bowl that is wanted, always the first by name, onto the plate."""

    def rule(self, errand: str, scene: Scene) -> Wish:
        """See `LiberoGoalExpert`."""
        lift = np.clip(scene.place("akita_black_bowl_1")[2] - 0.9, 0.05, 0.25)
        return carried(scene, "akita_black_bowl_1", BOWL, scene.place("plate_1"), float(lift))

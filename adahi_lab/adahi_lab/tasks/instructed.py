# SPDX-License-Identifier: Apache-2.0
"""Worlds in which only the target gets the goal: the robot's observations do not show it.

They have the robots of the original worlds. The goal is independent of all observations, so a policy on the
robot knows only what the target's replies reveal. The swarm's goal is independent in the original world, too.
The ball starts opposite to its goal there, and anywhere here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from adahi_lab.tasks.ball import TURN, BallBalancing, BallExpert, BallParameters
from adahi_lab.tasks.portable import norm, polar
from adahi_lab.tasks.swarm import Swarm, SwarmParameters
from adahi_ros.core.randomness import EpisodeStreams

BEHIND = 0.7
"""Within this share of the distance to the post beside the straight way, either side is possible."""


class BallInstructed(BallBalancing):
    """Ball balancing to a goal that only the target gets, anywhere in the ring round the post.

    Args:
        parameters: the world's constants.
    """

    def __init__(self, parameters: BallParameters | None = None) -> None:
        super().__init__(parameters)
        self.spec = replace(self.spec, name="ball_instructed", goal_for_target=True)

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers as `BallBalancing` does, with another goal."""
        super().reset(seed, episodes)
        self._goal = _goals(seed, episodes)

    def swap_goals(self, seed: int, episodes: Sequence[int]) -> None:
        """Replace the goals by those of other episodes; only what is done afterwards counts."""
        self._goal = _goals(seed, episodes)
        self._held[:], self._success[:] = 0, False

    def move_goals(self, distance_m: float) -> None:
        """Move each goal round the post, to its left as seen from there."""
        radius = norm(self._goal)[:, None]
        moved = self._goal + distance_m * np.stack([-self._goal[:, 1], self._goal[:, 0]], axis=1) / radius
        self._goal = moved * radius / norm(moved)[:, None]


def _goals(seed: int, episodes: Sequence[int]) -> np.ndarray:
    """Return the goals of episodes, (E, 2) m."""
    draws = EpisodeStreams(seed, "ball_instructed/goal", episodes, 2).next()
    return polar(0.10 + 0.08 * draws[:, 1], TURN * draws[:, 0])


class BallInstructedExpert(BallExpert):
    """Passes the post on the side drawn where the ball is behind it; else on the side where the ball is."""

    def _ways(self, level: np.ndarray, beside: np.ndarray) -> np.ndarray:
        """See `BallExpert`."""
        behind = np.abs(beside) < -BEHIND * level
        return np.where(behind, self.sides, np.where(beside < 0.0, -1.0, 1.0))


class SwarmInstructed(Swarm):
    """Swarm control to targets that only the target policy gets.

    The world defines the sector of each drone's target, but not the place in it.

    Args:
        parameters: the world's constants.
    """

    def __init__(self, parameters: SwarmParameters | None = None) -> None:
        super().__init__(parameters)
        self.spec = replace(self.spec, name="swarm_instructed", goal_for_target=True)

    def swap_goals(self, seed: int, episodes: Sequence[int]) -> None:
        """Replace the targets by those of other episodes; only what is done afterwards counts."""
        others = SwarmInstructed(self.parameters)
        others.reset(seed, episodes)
        self._target = others.targets
        self._held[:], self._completed[:], self._success[:] = 0, False, False

# SPDX-License-Identifier: Apache-2.0
"""Worlds whose goal is told to the target alone: what the robot sees does not say where to go.

They are the worlds of the same robots. The goal is drawn apart from all that is observed, so no policy of the
observation, however good, knows more of it than what the target has said. The swarm's is so in the plain
world, too; the ball, which there starts opposite to its goal, here starts anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.lab.tasks.ball import TURN, BallBalancing, BallExpert, BallParameters
from adahi_ros.lab.tasks.portable import polar
from adahi_ros.lab.tasks.swarm import Swarm, SwarmParameters

BEHIND = 0.7
"""Less beside the way than this share of what is left to the post, a ball may pass it on either side."""


class BallInstructed(BallBalancing):
    """Ball balancing to a place that the target alone is told, anywhere in the ring round the post.

    Args:
        parameters: the world's constants.
    """

    def __init__(self, parameters: BallParameters | None = None) -> None:
        super().__init__(parameters)
        self.spec = replace(self.spec, name="ball_instructed", goal_for_target=True)

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers as `BallBalancing` does, but for the goal."""
        super().reset(seed, episodes)
        draws = EpisodeStreams(seed, "ball_instructed/goal", episodes, 2).next()
        self._goal = polar(0.10 + 0.08 * draws[:, 1], TURN * draws[:, 0])


class BallInstructedExpert(BallExpert):
    """Passes the post on the side drawn where the ball is behind it; else on the side where the ball is."""

    def _ways(self, level: np.ndarray, beside: np.ndarray) -> np.ndarray:
        """See `BallExpert`."""
        behind = np.abs(beside) < -BEHIND * level
        return np.where(behind, self.sides, np.where(beside < 0.0, -1.0, 1.0))


class SwarmInstructed(Swarm):
    """Swarm control to targets that the target policy alone is told.

    A robot that knows the world knows in which sector the target of each drone lies, and not where in it.

    Args:
        parameters: the world's constants.
    """

    def __init__(self, parameters: SwarmParameters | None = None) -> None:
        super().__init__(parameters)
        self.spec = replace(self.spec, name="swarm_instructed", goal_for_target=True)

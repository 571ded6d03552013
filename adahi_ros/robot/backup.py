# SPDX-License-Identifier: Apache-2.0
"""Backup actions of robots without a plan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adahi_ros.core.observation_buffer import ObservationBuffer
from adahi_ros.core.randomness import step_uniforms
from adahi_ros.policies.interface import Policy, Sampling


class Backup:
    """The robot's own small policy, used only without a plan.

    Args:
        policy: proposes.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.reset(0, [0])

    def reset(self, seed: int, episodes: Sequence[int]) -> None:
        """Start the episodes with these numbers; B is how many there are."""
        self._seed, self._episodes = seed, episodes

    def actions(self, seen: ObservationBuffer, rows: np.ndarray, step: int, temperature: float) -> np.ndarray:
        """Return actions (M, A) for robots, by mask (B,); NaN where the policy makes no valid action.

        Args:
            seen: what the robots observed.
            rows: M of the B robots.
            step: of the episode; addresses the draws.
            temperature: of the policy's distributions.
        """
        count = self._policy.draws
        drawn = [
            step_uniforms(self._seed, "backup", episode, step, count)
            for episode, wanted in zip(self._episodes, rows, strict=True)
            if wanted
        ]
        proposal = self._policy.propose(
            seen.window(self._policy.signature).rows(rows),
            np.stack(drawn).reshape(len(drawn), count),
            Sampling(temperature),
        )
        sound = self._policy.sound(proposal.actions)
        actions: np.ndarray = np.where(sound[:, None], proposal.actions[:, 0], np.float32(np.nan))
        return actions

# SPDX-License-Identifier: Apache-2.0
"""No policy: a robot that only executes plans of its target, and is held where it has none."""

from __future__ import annotations

import numpy as np

from adahi_ros.core.proposal import ActionRange
from adahi_ros.core.signature import Observations
from adahi_ros.policies.direct import DirectPolicy
from adahi_ros.policies.flat_signature import flat_signature

LARGEST = 1e9  # as in the safety layer: more than any robot's units need


class AbsentPolicy(DirectPolicy):
    """Proposes NaN, which is never executed; any action of the target up to `LARGEST` is valid for it.

    It has no action statistics: the unit of the action deviation is that of the action.

    Args:
        observation_dim: O.
        goal_dim: G.
        action_dim: A.
    """

    def __init__(self, observation_dim: int, goal_dim: int, action_dim: int) -> None:
        signature = flat_signature(1, 1, action_dim, observation_dim, goal_dim)
        most = np.full(action_dim, LARGEST)
        super().__init__(signature, ActionRange(-most, most), np.ones(action_dim), "")

    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        """See `DirectPolicy`: not a number."""
        return np.full((len(draws), 1, self.signature.action_dim), np.nan)

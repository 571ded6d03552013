# SPDX-License-Identifier: Apache-2.0
"""A policy without codes: what it proposes are actions, and it does not say how likely they were."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from adahi_ros.core.proposal import ActionRange, Proposal
from adahi_ros.core.signature import Observations, Signature
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling


class DirectPolicy(Policy):
    """A `Policy` of actions alone; a class that derives from it says which, by `act`.

    Args:
        signature: without codes.
        action_range: what lies beyond is refused.
        action_scale: (A,), how much an action of each entry varies; the unit of the action deviation.
        digest: names its very configuration and weights.
        draws: how many uniform draws a proposal takes.
    """

    def __init__(
        self,
        signature: Signature,
        action_range: ActionRange,
        action_scale: np.ndarray,
        digest: str,
        draws: int = 0,
    ) -> None:
        self.signature = signature
        self.action_scale = action_scale.astype(np.float32)
        self.digest = digest
        self.draws = draws
        self._range = action_range

    @abstractmethod
    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        """Return actions (B, T, A) of B robots, by draws (B, draws) uniform in [0, 1)."""

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy.propose`."""
        return Proposal(self.act(observations, draws).astype(np.float32))

    def sound(self, actions: np.ndarray) -> np.ndarray:
        """See `Policy.sound`."""
        return self._range.sound(actions)

    def check(self, actions: np.ndarray) -> None:
        """See `Policy.check`."""
        self._range.check(actions)

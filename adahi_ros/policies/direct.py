# SPDX-License-Identifier: Apache-2.0
"""A policy without codes: it proposes actions without their probabilities."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Observations
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling


class DirectPolicy(Policy):
    """A `Policy` of actions; a subclass returns them from `act`."""

    @abstractmethod
    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        """Return actions (B, T, A) of B robots, by draws (B, draws) uniform in [0, 1)."""

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy.propose`."""
        return Proposal(self.act(observations, draws).astype(np.float32))

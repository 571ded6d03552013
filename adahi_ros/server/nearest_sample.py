# SPDX-License-Identifier: Apache-2.0
"""Chooses, of several drawn plans, the one nearest to the actions that a robot executes meanwhile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Observations
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling


class NearestPlan(Policy):
    """A `Policy` that proposes, of N plans, the one nearest to the committed actions.

    This is the backward coherence of bidirectional decoding (Liu et al., arXiv 2408.17355), over the
    committed actions only. A robot without committed actions gets the first plan. Proposals have no
    distribution.

    Args:
        policy: draws.
        samples: N.

    Raises:
        ValueError: N is out of range.
    """

    def __init__(self, policy: Policy, samples: int) -> None:
        if samples < 1:
            raise ValueError(f"samples: {samples}, must be at least 1")
        self.at_once, self.weights_known = policy.at_once, policy.weights_known
        draws = samples * policy.draws
        super().__init__(policy.signature, policy, policy.action_scale, policy.digest, draws)
        self._policy = policy
        self._samples = samples

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy.propose`."""
        batch, committed = len(draws), sampling.committed
        free, each = replace(sampling, committed=None), draws.reshape(batch, self._samples, -1)
        if committed is None or np.isnan(committed).all():
            return Proposal(self._policy.propose(observations, each[:, 0], free).actions)
        rows = np.repeat(np.arange(batch), self._samples)
        drawn = self._policy.propose(observations.rows(rows), each.reshape(len(rows), -1), free).actions
        plans = drawn.reshape(batch, self._samples, *drawn.shape[1:])
        apart = (plans[:, :, : committed.shape[1]] - committed[:, None]) / self.action_scale
        distance = np.where(np.isnan(committed)[:, None], 0.0, apart**2).sum(axis=(2, 3))
        nearest = np.where(np.isnan(distance), np.inf, distance).argmin(axis=1)
        return Proposal(plans[np.arange(batch), nearest])

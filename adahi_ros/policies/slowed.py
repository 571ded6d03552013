# SPDX-License-Identifier: Apache-2.0
"""A policy with added latency, to emulate a larger policy or a slower machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Observations
from adahi_ros.policies.interface import AS_TRAINED, JudgingPolicy, Policy, Sampling


class SlowedPolicy(Policy):
    """Proposes what a policy does, after a delay; judges codes, too, if the policy does.

    Args:
        policy: proposes.
        added_s: delay of every proposal.
        sleep: waits a number of seconds.
    """

    def __init__(self, policy: Policy, added_s: float, sleep: Callable[[float], None]) -> None:
        self._policy = policy
        self._added_s = added_s
        self._sleep = sleep
        self.at_once, self.weights_known = policy.at_once, policy.weights_known
        super().__init__(policy.signature, policy, policy.action_scale, policy.digest, policy.draws)
        if isinstance(policy, JudgingPolicy):
            self._judging, self.judge = policy, self._judge

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy`."""
        self._sleep(self._added_s)
        return self._policy.propose(observations, draws, sampling)

    def _judge(
        self, observations: Observations, codes: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        self._sleep(self._added_s)
        return self._judging.judge(observations, codes, sampling)

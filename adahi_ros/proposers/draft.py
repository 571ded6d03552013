# SPDX-License-Identifier: Apache-2.0
"""Proposers that run a draft policy at every step."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.policies.interface import Policy, Sampling
from adahi_ros.proposers.interface import Proposer, ProposerContext


class DraftProposer(Proposer):
    """The policy of `checkpoint`, at every step.

    Args:
        policy: the draft.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`."""
        sampling = Sampling(context.temperature, sendable=True)
        return self._policy.propose(context.observations, context.draws, sampling)


@runtime_checkable
class ProposingPolicy(Protocol):
    """A draft with a proposer of its own, such as one that learns from replies."""

    def proposer(self) -> Proposer:
        """Return a new one."""


def draft_proposer(policy: Policy) -> Proposer:
    """The policy of `checkpoint`, at every step."""
    return policy.proposer() if isinstance(policy, ProposingPolicy) else DraftProposer(policy)


class DraftChecksPlanProposer(Proposer):
    """Executes the plan, and measures its distance from the draft policy's present proposal.

    After SV-VLA (arXiv 2604.02965), where a light verifier queries the large policy on disagreement:
    here by the gate `expected_error`.

    Args:
        policy: the draft; its proposals are never executed.
    """

    needs_plan = True

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`; one action, NaN without a plan; the distance is a root mean square."""
        planned = context.plan.at(context.step)
        sampling = Sampling(context.temperature)
        drafted = self._policy.propose(context.observations, context.draws, sampling).actions[:, 0]
        distance = np.sqrt((((drafted - planned) / self._policy.action_scale) ** 2).mean(axis=1))
        return Proposal(planned[:, None], expected_error=np.where(np.isnan(distance), np.inf, distance))

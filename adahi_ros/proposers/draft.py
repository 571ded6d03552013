# SPDX-License-Identifier: Apache-2.0
"""Proposers that run a draft policy at every step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.registry import argument
from adahi_ros.policies.interface import Policy, Sampling
from adahi_ros.proposers.interface import Proposer, ProposerContext

ACTIONS, CODES, KEPT = REPLIES = ("actions", "codes", "kept")


@dataclass(eq=False)
class DraftProposer(Proposer):
    """A draft policy, at every step.

    Raises:
        ValueError: it must decode codes, and the policy has none.
    """

    policy: Policy
    reply: str = argument(
        ACTIONS,
        "What is executed of a reply. actions: the target's. codes: the draft policy's own for the target's "
        "codes; replies then have no actions. kept: the draft, where the target keeps all its codes, else "
        "the target's actions",
        choices=REPLIES,
    )

    def __post_init__(self) -> None:
        self.decodes, self.interprets = self.reply == CODES, self.reply != ACTIONS
        if self.interprets and self.policy.signature.codes is None:
            raise ValueError(f"proposer.reply: {self.reply!r}, must be actions: the policy has no codes")

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`."""
        sampling = Sampling(context.temperature, sendable=True)
        return self.policy.propose(context.observations, context.draws, sampling)

    def understood(self, verdict: Verdict, proposal: Proposal, rows: np.ndarray) -> Verdict:
        """See `Proposer`.

        The paper of ADAHI, section III-B1, has the device decode the codes of a reply.
        """
        drawn = proposal.distribution
        if self.decodes and drawn is not None and verdict.codes is not None:
            codes = drawn.codes.copy()
            codes[rows] = verdict.codes
            return replace(verdict, actions=drawn.actions_of(codes)[rows])
        if self.reply == KEPT and verdict.accepted.shape[1]:
            kept = np.all(verdict.accepted, axis=1, keepdims=True)[:, :, None]
            return replace(verdict, actions=np.where(kept, proposal.actions[rows], verdict.actions))
        return verdict


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

# SPDX-License-Identifier: Apache-2.0
"""A proposer that retrieves the demonstrated action at the nearest observation.

After the idea of HeiSD (arXiv 2603.17573). Here the gate `expected_error` skips requests where neighbours
agree, and the rule is `prefix`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_ros.core.plan import Plan
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.registry import argument
from adahi_ros.policies.interface import Actor, Policy, Sampling
from adahi_ros.policies.retrieval import Retrieval, load_retrieval
from adahi_ros.proposers.interface import Proposer, ProposerContext
from adahi_ros.proposers.opened_file import FILE, opened


@dataclass(eq=False)
class RetrievalProposer(Proposer):
    """Executes the target's plan; without one, the demonstrated action at the nearest observation.

    Raises:
        ValueError: there is no index in the file, or it is of another robot.
    """

    policy: Policy  # the robot's or, without a file, what retrieves
    file: str = argument("", FILE, optional=True)

    def __post_init__(self) -> None:
        self.actor: Retrieval = opened(self.policy, self.file, Retrieval, load_retrieval)

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`; the expected error of the target's plan is 0."""
        sampling = Sampling(context.temperature)
        proposal = self.actor.propose(context.observations, context.draws, sampling)
        expected = proposal.expected_error
        return planned_first(
            context.plan,
            context.step,
            proposal.actions,
            np.full(len(proposal.actions), np.inf) if expected is None else expected,
        )


class DraftAndRetrieval(Actor):
    """An `Actor` of both, with the inputs and outputs of the draft.

    Attributes:
        draft: used where the tool moves little.
        retrieval: used where it moves far.
    """

    def __init__(self, draft: Policy, retrieval: Retrieval) -> None:
        self.draft = draft
        self.retrieval = retrieval
        digest = f"{draft.digest} {retrieval.digest}"
        super().__init__(draft.signature, draft, draft.action_scale, digest, draft.draws)


def planned_first(plan: Plan, step: int, actions: np.ndarray, expected_error: np.ndarray) -> Proposal:
    """Return the target's plan, with expected error 0, or the proposal for robots without a plan.

    Args:
        plan: the planned actions.
        step: of the episode.
        actions: (B, T, A), for robots without a plan.
        expected_error: (B,), of `actions`.
    """
    planned = plan.left(step) > 0
    ahead = plan.ahead(step, actions.shape[1])
    return Proposal(
        np.where(planned[:, None, None], ahead, actions).astype(np.float32),
        expected_error=np.where(planned, 0.0, expected_error),
    )

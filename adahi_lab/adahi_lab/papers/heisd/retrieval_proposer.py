# SPDX-License-Identifier: Apache-2.0
"""A proposer that retrieves the demonstrated action at the nearest observation.

After the idea of HeiSD (arXiv 2603.17573). Here the gate `expected_error` skips requests where neighbours
agree, and the rule is `prefix`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_lab.papers.heisd.retrieval import INDEX, Retrieval, opened_index
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.registry import argument
from adahi_ros.policies.interface import Policy, Sampling
from adahi_ros.proposers.interface import Proposer, ProposerContext


@dataclass(eq=False)
class RetrievalProposer(Proposer):
    """Executes the target's plan; without one, the demonstrated action at the nearest observation.

    Raises:
        ValueError: there is no index in the file, or it is of another robot.
    """

    policy: Policy
    file: str = argument("", INDEX, optional=True)

    def __post_init__(self) -> None:
        self.actor: Retrieval = opened_index(self.policy, self.file)

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`; the expected error of the target's plan is 0."""
        sampling = Sampling(context.temperature)
        proposal = self.actor.propose(context.observations, context.draws, sampling)
        planned = context.plan.left(context.step) > 0
        ahead = context.plan.ahead(context.step, proposal.actions.shape[1])
        return Proposal(
            np.where(planned[:, None, None], ahead, proposal.actions).astype(np.float32),
            expected_error=np.where(planned, 0.0, np.asarray(proposal.expected_error)),
        )

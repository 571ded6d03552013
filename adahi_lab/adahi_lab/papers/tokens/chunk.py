# SPDX-License-Identifier: Apache-2.0
"""A proposer that drafts a whole chunk of actions where the last one is over."""

from __future__ import annotations

import numpy as np

from adahi_ros.core.proposal import CodeDistribution, Proposal
from adahi_ros.policies.interface import Policy, Sampling
from adahi_ros.proposers.interface import Proposer, ProposerContext


class ChunkProposer(Proposer):
    """Executes a verified chunk, then drafts another.

    So a robot sends one request per chunk. Its gate is `never`: between, there is no draft to send.

    Args:
        policy: the draft.
    """

    needs_plan = True
    drafts_plans = True

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def propose(self, context: ProposerContext) -> Proposal | None:
        """See `Proposer`; None where all robots have a plan."""
        rows = np.flatnonzero(context.plan.left(context.step) == 0)
        if not rows.size:
            return None
        sampling = Sampling(context.temperature, sendable=True)
        made = self._policy.propose(context.observations.rows(rows), context.draws[rows], sampling)
        actions = context.plan.ahead(context.step, made.actions.shape[1])
        actions[rows] = made.actions
        drawn = made.distribution
        if drawn is None or len(rows) == len(actions):
            return Proposal(actions, drawn)

        def spread(values: np.ndarray) -> np.ndarray:
            every = np.zeros((len(actions), *values.shape[1:]), dtype=values.dtype)
            every[rows] = values
            return every

        counts = None if drawn.counts is None else spread(drawn.counts)
        parts = spread(drawn.probabilities), spread(drawn.codes), drawn.actions_of, counts
        return Proposal(actions, CodeDistribution(*parts))

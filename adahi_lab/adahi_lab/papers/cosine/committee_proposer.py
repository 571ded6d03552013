# SPDX-License-Identifier: Apache-2.0
"""Runs several drafts at every step, and learns from the target's replies which of them fits.

**Credit.** A reply reports whether the target kept each code c that was drafted from a distribution p. If the
target were member m with p_m, it would keep c with probability min(1, p_m(c) / p(c)), by speculative
sampling (Leviathan et al., 2023). So every reply is evidence for and against each member, used or not. The
credit of a member is its posterior: log credit = memory * log credit + log-likelihood of the kept codes.
No draft equals the target, and codes of the best are rejected, too: with probability `doubt` a decision
counts as chance. Where drafts have no codes, the likelihood is Gaussian in the distance of the
member's action from the target's.

The weights of members depend only on earlier replies, and codes are drawn from exactly the distribution that
is sent, so speculative sampling stays exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import Proposal, probabilities_at
from adahi_ros.policies.committee import LEAST, Committee
from adahi_ros.policies.interface import Sampling
from adahi_ros.proposers.interface import Proposer, ProposerContext

LATEST_REPLY = 64  # steps; later replies are not used


@dataclass(frozen=True)
class _Drafted:
    """The drafts of a step.

    Attributes:
        kept: (B, M, N), probability that a target equal to member m keeps each drafted code; N is 0 without
            codes.
        first: (B, M, A), the members' first actions, in action scales.
        open: (B,) bool, no reply has arrived yet; changes.
    """

    kept: np.ndarray
    first: np.ndarray
    open: np.ndarray


class CommitteeProposer(Proposer):
    """A `Proposer` of several drafts.

    Args:
        committee: the drafts, and how they work together.
    """

    def __init__(self, committee: Committee) -> None:
        self._committee = committee
        self._begin(0)

    @property
    def credit(self) -> np.ndarray:
        """(B, M), the credit of each member for each robot; rows sum to one."""
        weights = np.exp(self._log_credit - self._log_credit.max(axis=1, keepdims=True))
        credit: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
        return credit

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`."""
        if context.begins or len(context.draws) != len(self._log_credit):
            self._begin(len(context.draws))
        committee, draws = self._committee, context.draws
        sampling = Sampling(context.temperature, sendable=True)
        opinions = committee.opinions(context.observations, draws, sampling)
        proposal = committee.fuse(opinions, self.credit, draws, sampling)
        if len(opinions) > 1 and committee.rules.memory > 0.0:
            self._awaited[context.step] = self._drafted(opinions, proposal)
            while (oldest := next(iter(self._awaited))) <= context.step - LATEST_REPLY:
                del self._awaited[oldest]
        return proposal

    def observe_reply(self, requested_at: int, verdict: Verdict, rows: np.ndarray) -> None:
        """See `Proposer`."""
        drafts = self._awaited.get(requested_at)
        if drafts is None:
            return
        new = drafts.open[rows]
        rows, verdict = rows[new], verdict.rows(new)
        drafts.open[rows] = False  # a duplicate reply counts once
        rules = self._committee.rules
        kept, accepted = drafts.kept[rows], verdict.accepted[:, None]
        if kept.shape[-1] and kept.shape[-1] == accepted.shape[-1]:
            likely = np.where(accepted, kept, 1.0 - kept)
            evidence = np.log(rules.doubt / 2 + (1.0 - rules.doubt) * likely).sum(axis=-1)
        else:
            off = drafts.first[rows] - (verdict.actions[:, 0] / self._committee.action_scale)[:, None]
            evidence = -0.5 * (off**2).mean(axis=-1) / rules.error**2
        self._log_credit[rows] = rules.memory * self._log_credit[rows] + evidence

    def _begin(self, robots: int) -> None:
        self._log_credit = np.zeros((robots, len(self._committee.members)))
        self._awaited: dict[int, _Drafted] = {}

    def _drafted(self, opinions: list[Proposal], proposal: Proposal) -> _Drafted:
        first = np.stack([each.actions[:, 0] for each in opinions], axis=1) / self._committee.action_scale
        drafted, robots = proposal.distribution, len(first)
        kept = np.zeros((robots, len(opinions), 0))
        if drafted is not None:
            distributions = [each.distribution for each in opinions]
            likely = [
                probabilities_at(each.probabilities, drafted.codes)
                for each in distributions
                if each is not None
            ]
            of_all = probabilities_at(drafted.probabilities, drafted.codes)[:, None]
            kept = np.minimum(1.0, np.stack(likely, axis=1) / np.maximum(of_all, LEAST))
        return _Drafted(kept, first, np.ones(robots, dtype=bool))

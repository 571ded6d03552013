# SPDX-License-Identifier: Apache-2.0
"""Several drafts as one policy: fuses their distributions over codes by confidence and by credit.

After CoSine (arXiv 2503.10325): specialised drafters propose together, more work goes to drafters with
accepted drafts, and tokens are fused by confidence.

A member's confidence in a code is 1 - H / log K, H the entropy of its distribution: 1 where it is certain,
0 where it knows nothing. Members without codes are weighted by the inverse square of their expected error,
or all alike where one does not state it.

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

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import (
    CodeDistribution,
    Proposal,
    counted,
    probabilities_at,
    probabilities_of,
    sample,
)
from adahi_ros.core.schema import Schema, Text, above, checked, must, one_of, within
from adahi_ros.core.signature import Observations
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling
from adahi_ros.proposers.interface import Proposer, ProposerContext

Members = Annotated[list[Text], must("be a list of names of checkpoints")]
LEAST = 1e-6  # lowest weight or probability, to avoid division by zero
LATEST_REPLY = 64  # steps; later replies are not used


def _of_the_best(weights: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    return np.eye(weights.shape[1])[weights.argmax(axis=1)]


def _of_one_drawn(weights: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    return np.eye(weights.shape[1])[sample(weights, uniforms[:, 0])]


def _of_all(weights: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    return weights


def _sum(shares: np.ndarray, distributions: np.ndarray) -> np.ndarray:
    mixed: np.ndarray = (shares[..., None] * distributions).sum(axis=1)
    return mixed


def _product(shares: np.ndarray, distributions: np.ndarray) -> np.ndarray:
    logs = (shares[..., None] * np.log(np.maximum(distributions, LEAST))).sum(axis=1)
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    mixed: np.ndarray = weights / weights.sum(axis=-1, keepdims=True)
    return mixed


Chosen = Callable[[np.ndarray, np.ndarray], np.ndarray]
Mixed = Callable[[np.ndarray, np.ndarray], np.ndarray]
FUSIONS: dict[str, tuple[Chosen, Mixed]] = {
    "best": (_of_the_best, _sum),  # routing: the member with the most credit alone
    "drawn": (_of_one_drawn, _sum),  # routing: one member, drawn by its credit
    "sum": (_of_all, _sum),  # a mixture of experts
    "product": (_of_all, _product),  # a product of experts: certain members outvote uncertain ones
}
"""Fusions: from weights (B, M) to those that count, and from distributions to one."""


@dataclass(frozen=True)
class CommitteeRules(Schema):
    """How the members of a committee work together.

    Attributes:
        fusion: a key of `FUSIONS`.
        confidence: also weights members; unused where only one is used.
        memory: how much of a member's credit remains from one reply to the next; 0 learns nothing.
        doubt: probability that a code is rejected, or kept, for reasons unrelated to any member; higher
            values slow down learning.
        error: in action scales, distance of a fitting member without codes from the target.
    """

    fusion: Annotated[str, one_of(FUSIONS)] = "best"
    confidence: bool = True
    memory: Annotated[float, within(0.0, 1.0)] = 0.98
    doubt: Annotated[float, must("be a number above 0 and below 1", lambda value: 0.0 < value < 1.0)] = 0.5
    error: Annotated[float, above(0.0)] = 0.5


@dataclass(frozen=True)
class _AnyOf:
    """Actions are valid if any member may propose them: a reply may be close to another member's."""

    members: tuple[Policy, ...]

    def sound(self, actions: np.ndarray) -> np.ndarray:
        return np.asarray(np.any([member.sound(actions) for member in self.members], axis=0))

    def check(self, actions: np.ndarray) -> None:
        """Raise the first member's error."""
        if not self.sound(actions).all():
            self.members[0].check(actions[~self.sound(actions)])


class Committee(Policy):
    """A `Policy` of several members. By itself it gives all the same credit.

    Args:
        members: at least one, with the same signature except the number of weights.
        rules: how they work together.

    Raises:
        ValueError: there is none, or their signatures differ.
    """

    def __init__(self, members: Sequence[Policy], rules: CommitteeRules) -> None:
        if not members:
            raise ValueError("members: none, must be at least one")
        self.members, self.rules = tuple(members), rules
        first = members[0].signature
        for number, member in enumerate(members):
            alike = replace(member.signature, parameters=first.parameters)
            for field in fields(first):
                ours, theirs = getattr(first, field.name), getattr(alike, field.name)
                if ours != theirs:
                    raise ValueError(f"members[{number}]: {field.name}: {theirs}, members[0] has {ours}")
        self._chosen, self._mixed = FUSIONS[rules.fusion]
        self._own_draws = max(member.draws for member in members)
        signature = replace(first, parameters=sum(each.signature.parameters for each in members))
        named = [*(member.digest for member in members), *map(str, asdict(rules).items())]
        joint = hashlib.sha256("\n".join(named).encode()).hexdigest()[:16]
        super().__init__(
            signature,
            _AnyOf(self.members),
            members[0].action_scale,
            members[0].digest if len(members) == 1 else joint,
            self._own_draws + (rules.fusion == "drawn" and len(members) > 1),
        )

    def opinions(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> list[Proposal]:
        """Return what each member would propose; arguments as of `Policy.propose`."""
        alone = len(self.members) == 1
        own = sampling if alone else replace(sampling, sendable=False)
        return [member.propose(observations, draws[:, : member.draws], own) for member in self.members]

    def fuse(
        self,
        opinions: Sequence[Proposal],
        credit: np.ndarray,
        draws: np.ndarray,
        sampling: Sampling = AS_TRAINED,
    ) -> Proposal:
        """Return their joint proposal.

        Args:
            opinions: of M members.
            credit: (B, M), not negative, each row with a positive sum.
            draws: as of `Policy.propose`.
            sampling: likewise.
        """
        if len(opinions) == 1:
            return opinions[0]
        weights = self._chosen(credit, draws[:, self._own_draws :])
        found = [each.distribution for each in opinions]
        if any(each is None for each in found):
            return _average(opinions, weights, self.rules.confidence)
        distributions = np.stack([each.probabilities for each in found if each is not None], axis=1)
        shares = np.broadcast_to(weights[..., None], distributions.shape[:3])  # (B, M, N)
        if self.rules.confidence:
            shares = shares * _confidence(distributions)
        shares = shares / shares.sum(axis=1, keepdims=True)
        probabilities, counts = self._mixed(shares, distributions).astype(np.float32), None
        if sampling.sendable:
            counts = counted(probabilities)
            probabilities = probabilities_of(counts)

        def actions_of(codes: np.ndarray) -> np.ndarray:
            # A code means about the same to all; each offset is weighted by how likely the code is that
            # member's.
            likely = [probabilities_at(distributions[:, m], codes) for m in range(len(opinions))]
            posterior = (np.stack(likely, axis=1).astype(np.float64) * shares + LEAST * shares).prod(axis=-1)
            posterior = (posterior / posterior.sum(axis=1, keepdims=True)).astype(np.float32)
            each = [one.actions_of(codes) for one in found if one is not None]
            actions: np.ndarray = sum(
                (posterior[:, m, None, None] * actions for m, actions in enumerate(each)),
                start=np.float32(0.0),
            )
            return actions

        codes = sample(probabilities if counts is None else counts, draws[:, : self._own_draws])
        return Proposal(actions_of(codes), CodeDistribution(probabilities, codes, actions_of, counts))

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy.propose`."""
        alike = np.ones((len(draws), len(self.members)))
        return self.fuse(self.opinions(observations, draws, sampling), alike, draws, sampling)

    def proposer(self) -> CommitteeProposer:
        """See `ProposingPolicy`; it learns from replies: a policy is stateless."""
        return CommitteeProposer(self)


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


def load_committee(folder: Path, /, **values: Any) -> Committee:
    """Load a committee of checkpoints from the values of a YAML file of `kind: committee`.

    Args:
        folder: of the file.
        values: of the file: `members`, names of checkpoints beside it, which run on ONNX Runtime, and
            the fields of `CommitteeRules`.

    Raises:
        ValueError: names the field, its value and what was allowed.
        CheckpointError: a member cannot be loaded.
    """
    members = checked(Members, values.pop("members", None), "members")
    rules = checked(CommitteeRules, values)
    return Committee([load_policy(folder / name, "onnxruntime") for name in members], rules)


def _confidence(distributions: np.ndarray) -> np.ndarray:
    """Return the confidence of members in each code, (B, M, N), for distributions (B, M, N, K)."""
    logs = np.log(np.maximum(distributions, LEAST))
    entropy = -(distributions * logs).sum(axis=-1)
    confidence: np.ndarray = np.maximum(1.0 - entropy / np.log(distributions.shape[-1]), LEAST)
    return confidence


def _average(opinions: Sequence[Proposal], weights: np.ndarray, confidence: bool) -> Proposal:
    """Return the weighted average of actions and its expected error; weights (B, M)."""
    expected = [each.expected_error for each in opinions]
    errors = None
    if not any(each is None for each in expected):
        errors = np.stack([each for each in expected if each is not None], axis=1).astype(np.float64)
        if confidence:
            weights = weights / np.maximum(errors, LEAST) ** 2
    weights = weights / weights.sum(axis=1, keepdims=True)
    actions = sum(
        (weights[:, m, None, None] * each.actions for m, each in enumerate(opinions)), start=np.float64(0.0)
    )
    error = None if errors is None else np.sqrt((weights * errors**2).sum(axis=1))
    return Proposal(np.asarray(actions, dtype=np.float32), expected_error=error)

# SPDX-License-Identifier: Apache-2.0
"""Verifies a batch of drafts: the target's proposals, and the rule's verdicts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from adahi_ros.acceptance.interface import Acceptance, Verdict
from adahi_ros.acceptance.registry import ACCEPTANCES, rule_for
from adahi_ros.core.proposal import Proposal, rows_of
from adahi_ros.core.randomness import step_uniforms
from adahi_ros.core.signature import Observations, Ranges, Signature
from adahi_ros.policies.interface import (
    JudgingPolicy,
    Policy,
    Sampling,
    TargetUnavailableError,
    TooManyAtOnceError,
    fingerprint_of,
)
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.request import PARTS_MOST, RequestError, RequestFault, sent_codes

SAMPLES = 8  # plans that the agreement `choose` draws
AGREEMENTS = {
    "none": "it plans from the observation alone",
    "continue": "it continues committed actions; flow policies alone can",
    "choose": "it sends the plan, of several, nearest to committed actions",
}
"""How plans agree with committed actions, which a robot executes before the reply arrives."""


@dataclass(frozen=True)
class VerificationRequest:
    """Drafts of M robots, to be verified.

    Attributes:
        observations: of M robots, as the target reads them.
        draft: the proposals as they were sent; parts that the rule does not need may be missing.
        committed: (M, d, A) float32, actions that they execute before the reply; see `Sampling`.
    """

    observations: Observations
    draft: Proposal
    committed: np.ndarray | None = None

    def rows(self, which: np.ndarray) -> VerificationRequest:
        """Return those of some robots, by index."""
        drawn = self.draft.distribution
        if drawn is not None and drawn.counts is not None:
            drawn = sent_codes(drawn.codes[which], drawn.counts[which])
        return VerificationRequest(
            self.observations.rows(which),
            Proposal(self.draft.actions[which], drawn, data=rows_of(self.draft.data, which)),
            None if self.committed is None else self.committed[which],
        )


def kind_of(request: VerificationRequest) -> Hashable:
    """Return what requests must have in common for `joined`: which parts of a draft they have."""
    drawn = request.draft.distribution
    return request.draft.actions.shape[1], None if drawn is None else drawn.codes.shape[1]


def joined(requests: Sequence[VerificationRequest]) -> VerificationRequest:
    """Join requests of one kind into one of all their robots, in order."""
    if len(requests) == 1:
        return requests[0]
    seen, drafts = [each.observations for each in requests], [each.draft for each in requests]
    drawn = [each.distribution for each in drafts if each.distribution is not None]
    counts = [each.counts for each in drawn if each.counts is not None]
    codes = (
        sent_codes(np.concatenate([each.codes for each in drawn]), np.concatenate(counts)) if drawn else None
    )
    data = _by_name([each.data for each in drafts])
    return VerificationRequest(
        Observations(
            _by_name([each.features for each in seen]),
            _by_name([each.conditions for each in seen]),
            tuple(instruction for each in seen for instruction in each.instructions),
            _by_name([each.images for each in seen]),
            tuple(episode for each in seen for episode in each.episodes),
        ),
        Proposal(np.concatenate([each.actions for each in drafts]), codes, data=data),
        _committed(requests),
    )


def _by_name(parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _committed(requests: Sequence[VerificationRequest]) -> np.ndarray | None:
    """Return the committed actions (M, d, A), NaN after the end of shorter ones."""
    known = [each.committed for each in requests if each.committed is not None]
    if not known:
        return None
    most, size = max(actions.shape[1] for actions in known), known[0].shape[2]
    parts = []
    for each in requests:
        part = np.full((len(each.draft.actions), most, size), np.nan, dtype=np.float32)
        if each.committed is not None:
            part[:, : each.committed.shape[1]] = each.committed
        parts.append(part)
    return np.concatenate(parts)


Verdicts = list[Verdict | Exception]
"""For each robot of a batch its verdict (M = 1), or the error."""


@dataclass(frozen=True)
class Terms:
    """Public properties of a verifier.

    Attributes:
        signature: what the target reads and proposes.
        draws: number of uniform draws per verdict.
        rule: a key of `ACCEPTANCES`.
        acceptance: that rule.
        fingerprint: of the target's configuration and weights, see `fingerprint_of`.
        intent_fingerprint: of the encoder of intents; empty without one.
        intent_size: Z, numbers of an intent; 0 without an encoder.
        ranges: of features and actions that the target learnt from.
    """

    signature: Signature
    draws: int
    rule: str
    acceptance: Acceptance
    fingerprint: str
    intent_fingerprint: str = ""
    intent_size: int = 0
    ranges: tuple[Ranges, Ranges] = (Ranges(), Ranges())

    def described(self, name: str, encoder_fingerprint: str = "") -> Description:
        """Return the description for robots.

        Args:
            name: of the target.
            encoder_fingerprint: of its image encoder; empty without one.
        """
        return Description(
            name,
            self.rule,
            self.signature,
            encoder_fingerprint,
            policy_fingerprint=self.fingerprint,
            intent_fingerprint=self.intent_fingerprint,
            intent_size=self.intent_size,
            feature_ranges=self.ranges[0],
            action_ranges=self.ranges[1],
        )


class ReplyEncoder(Protocol):
    """Makes intents of a target's replies; see `adahi_ros.policies.intent.intent`."""

    fingerprint: str

    @property
    def size(self) -> int:
        """Z, numbers of an intent."""

    def check_target(self, signature: Signature) -> None:
        """Check that it reads what this target reads and plans.

        Raises:
            ValueError: names the field, the value and what is allowed.
        """

    def encode_replies(self, observations: Observations, plans: np.ndarray) -> np.ndarray:
        """Return the intents (B, Z) int8 of plans (B, T, A)."""


class Verifier(Protocol):
    """Verifies drafts, here or elsewhere.

    Attributes:
        terms: its target and rule.
        at_once: number of batches that it verifies in parallel.
        alone: each robot must be a batch of its own, because the target's server batches by itself.
    """

    terms: Terms
    at_once: int
    alone: bool

    def submit(self, request: VerificationRequest, draws: np.ndarray, until_s: float) -> Future[Verdicts]:
        """Start verifying M drafts with uniform draws (M, draws, 2); raises nothing.

        Args:
            request: of M robots.
            draws: of each robot.
            until_s: when the verdicts become useless, by the verifier's clock.

        Returns:
            A future of what `TargetVerifier.verify_each` returns; it holds no exception.
        """


class TargetVerifier:
    """Verifies drafts with a target policy.

    With an exact rule, the results have the distribution of the target's own proposals, if it gets every
    draft, or a share that does not depend on the draws; see `Gate.blind`.

    Attributes:
        policy: the target, or its wrapper.
        terms, at_once, alone: see `Verifier`; `at_once` is the number of threads that may call `submit`.

    Args:
        policy: the target.
        rule: see `rule_for`.
        temperature: of the target's distributions, above zero.
        sendable: see `Sampling`.
        agreement: a key of `AGREEMENTS`.
        samples: number of plans that `choose` draws.
        arguments: of the rule, by name.
        intents: makes the intents of its replies; None for replies without.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """

    def __init__(
        self,
        policy: Policy,
        rule: str = "speculative",
        temperature: float = 1.0,
        sendable: bool = False,
        agreement: str = "none",
        samples: int = SAMPLES,
        arguments: Mapping[str, Any] = MappingProxyType({}),
        intents: ReplyEncoder | None = None,
    ) -> None:
        rule = rule_for(rule, policy.signature)
        if not 0.0 < temperature < np.inf:
            raise ValueError(f"temperature: {temperature}, must be above 0 and finite")
        if agreement not in AGREEMENTS:
            raise ValueError(f"agreement: {agreement!r}, must be one of {', '.join(AGREEMENTS)}")
        if agreement == "choose" and ACCEPTANCES[rule].needs_codes:
            raise ValueError(
                f"agreement: 'choose', must be another one with the rule {rule!r}, which needs codes"
            )
        self.policy = policy
        if agreement == "choose":
            from adahi_ros.server.nearest_sample import NearestPlan

            self.policy = NearestPlan(policy, samples)
        self.acceptance, fingerprint = ACCEPTANCES.made("rule", rule, arguments), fingerprint_of(policy)
        self.acceptance.action_scale = policy.action_scale
        self.acceptance.check_target(policy.signature, fingerprint)
        kind = "", 0
        if intents is not None:
            intents.check_target(policy.signature)
            kind = intents.fingerprint, intents.size
        of_target = policy.signature, self.policy.draws, rule, self.acceptance, fingerprint
        self.terms = Terms(*of_target, *kind, policy.ranges)
        self.at_once, self.alone = policy.at_once, policy.at_once > 1
        self._sampling = Sampling(temperature, sendable)
        self._agrees = agreement != "none"
        codes = policy.signature.codes
        self._judges = self.acceptance.needs_codes and codes is not None and codes.sequential
        if self._judges and not isinstance(policy, JudgingPolicy):
            found = type(policy).__name__
            raise ValueError(f"rule: {rule!r}, needs a target that judges codes; {found} does not")
        self._intents = intents

    def submit(self, request: VerificationRequest, draws: np.ndarray, until_s: float) -> Future[Verdicts]:
        """See `Verifier`; the returned future is done."""
        verdicts: Future[Verdicts] = Future()
        verdicts.set_result(self.verify_each(request, draws))
        return verdicts

    def verify(self, request: VerificationRequest, draws: np.ndarray) -> Verdict:
        """Verify M drafts with uniform draws (M, policy.draws, 2).

        Raises:
            RequestError: the target's prediction is not finite.
            ValueError: the verdict does not have the target's sizes.
        """
        verdict = self._checked(self.verdict(request, draws), request, draws)
        if not np.isfinite(verdict.actions).all():
            raise self._not_finite(request)
        return verdict

    def verify_each(self, request: VerificationRequest, draws: np.ndarray) -> Verdicts:
        """Verify M drafts with uniform draws (M, policy.draws, 2); raises nothing.

        Returns:
            For each robot the verdict (M = 1), or the error. If the policy raises for one robot's request,
            the others are verified without it.
        """
        try:
            verdict = self._checked(self.verdict(request, draws), request, draws)
        except Exception as error:  # noqa: BLE001  a policy of another package may raise anything
            if isinstance(error, TargetUnavailableError) and not isinstance(error, TooManyAtOnceError):
                return [error.with_traceback(None)] * len(draws)
            if len(draws) == 1:
                return [error.with_traceback(None)]
            halves = np.array_split(np.arange(len(draws)), 2)
            return [one for half in halves for one in self.verify_each(request.rows(half), draws[half])]
        finite = np.isfinite(verdict.actions).all(axis=(1, 2))
        each = [verdict] if len(draws) == 1 else [verdict.rows(np.array([row])) for row in range(len(draws))]
        return [one if sound else self._not_finite(request) for one, sound in zip(each, finite, strict=True)]

    def _not_finite(self, request: VerificationRequest) -> RequestError:
        reads_draft = self._agrees and request.committed is not None
        return RequestError(
            RequestFault.NOT_FINITE,
            f"observation_window{' or draft_actions' if reads_draft else ''}: so far from the task's that "
            "the target's prediction is not finite",
        )

    def verdict(self, request: VerificationRequest, draws: np.ndarray) -> Verdict:
        """Verify M drafts; the result may not be finite."""
        sampling = self._sampling
        if self._agrees and request.committed is not None:
            sampling = replace(sampling, committed=request.committed)
        drawn = request.draft.distribution
        if self._judges and drawn is not None:  # a code's distribution depends on the codes before it
            assert isinstance(self.policy, JudgingPolicy)
            proposal = self.policy.judge(request.observations, drawn.codes, sampling)
        else:
            proposal = self.policy.propose(request.observations, draws[..., 1], sampling)
        verdict = self.acceptance.verify(request.draft, proposal, draws)
        if self._intents is None:
            return verdict
        intent = self._intents.encode_replies(request.observations, verdict.actions)
        return replace(verdict, intent=intent)

    def _checked(self, verdict: Verdict, request: VerificationRequest, draws: np.ndarray) -> Verdict:
        """Check a verdict's shapes and types: policy and rule may be another package's."""
        signature, needs_codes, robots = self.policy.signature, self.acceptance.needs_codes, len(draws)
        with np.errstate(over="ignore"):  # the caller checks for infinite values
            actions = np.asarray(verdict.actions, dtype=np.float32)
        accepted = np.asarray(verdict.accepted, dtype=bool)
        expected = robots, signature.horizon, signature.action_dim
        codes = None if request.draft.distribution is None else request.draft.distribution.codes
        if actions.shape != expected:
            raise ValueError(f"actions: of shape {actions.shape}, must be {expected}, the target's")
        parts = accepted.shape[-1] if accepted.ndim == 2 else 0
        wanted = codes.shape[1] if needs_codes and codes is not None else parts
        if accepted.shape != (robots, wanted) or wanted > PARTS_MOST:
            allowed = wanted if needs_codes else f"at most {PARTS_MOST}"
            raise ValueError(f"accepted: of shape {accepted.shape}, must be ({robots}, N), N {allowed}")
        if len(verdict.asks) not in (0, robots):
            raise ValueError(f"asks: {len(verdict.asks)}, must be none, or {robots}")
        return replace(
            verdict, actions=actions, accepted=accepted, codes=self._checked_codes(verdict, robots)
        )

    def _checked_codes(self, verdict: Verdict, robots: int) -> np.ndarray | None:
        """Return a verdict's codes (M, N) int64, or None."""
        space = self.policy.signature.codes
        if verdict.codes is None or space is None:
            return None
        codes, expected = np.asarray(verdict.codes), (robots, space.codebooks)
        if codes.shape != expected or codes.min() < 0 or codes.max() >= space.codebook_size:
            found = f"of shape {codes.shape}, from {codes.min()} to {codes.max()}"
            raise ValueError(f"codes: {found}, must be {expected}, from 0 to {space.codebook_size - 1}")
        return codes.astype(np.int64, copy=False)


def verification_stream(robot_id: str) -> str:
    """Name the stream of a robot's verification draws."""
    return f"verify/{robot_id}"


def verification_uniforms(seed: int, robot_id: str, episode: int, step: int, count: int) -> np.ndarray:
    """Return the draws (1, count, 2) of one robot's step, so that a repeated request gets the same reply."""
    draws = step_uniforms(seed, verification_stream(robot_id), episode, step, 2 * count)
    return draws.reshape(1, count, 2)

# SPDX-License-Identifier: Apache-2.0
"""The target's side of one batch: drafts to verify, what the target proposes, and the rule's verdict."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from adahi_ros.acceptance.interface import WITHIN, Acceptance, Verdict
from adahi_ros.acceptance.registry import ACCEPTANCES, made, rule_for
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.randomness import EpisodeStreams, step_uniforms
from adahi_ros.core.signature import Observations, Signature
from adahi_ros.policies.interface import (
    Policy,
    Sampling,
    TargetUnavailableError,
    TooManyAtOnceError,
    fingerprint_of,
)
from adahi_ros.protocol.request import PARTS_MOST, RequestError, RequestFault, sent_codes

SAMPLES = 8  # plans of which the agreement `choose` takes one
AGREEMENTS = {
    "none": "it plans from the observation alone",
    "continue": "it continues the actions that a robot has committed to; only flow policies can",
    "choose": "it sends the plan, of several, that is nearest to the actions that a robot has committed to",
}
"""What becomes of actions that a robot executes whatever is replied, because they come before a reply can."""


@dataclass(frozen=True)
class VerificationRequest:
    """Drafts of M robots, to be verified.

    Attributes:
        observations: of M robots, as the target reads them.
        draft: what they would do, as it was sent; what the rule does not need may be missing.
        committed: (M, d, A) float32, what of it they execute whatever is replied; see `Sampling`.
        round_trip_ms: (M,), what one takes now without the verifier's share, NaN of robots of which nobody
            knows; None where nobody knows of any.
    """

    observations: Observations
    draft: Proposal
    committed: np.ndarray | None = None
    round_trip_ms: np.ndarray | None = None

    def rows(self, which: np.ndarray) -> VerificationRequest:
        """Return those of some robots, by index."""
        drawn = self.draft.distribution
        if drawn is not None and drawn.counts is not None:
            drawn = sent_codes(drawn.codes[which], drawn.counts[which])
        return VerificationRequest(
            self.observations.rows(which),
            Proposal(self.draft.actions[which], drawn),
            None if self.committed is None else self.committed[which],
            None if self.round_trip_ms is None else self.round_trip_ms[which],
        )


def kind_of(request: VerificationRequest) -> Hashable:
    """Return what is the same of requests that `joined` can join: which parts of a draft they have."""
    return request.draft.actions.shape[1], request.draft.distribution is None


def joined(requests: Sequence[VerificationRequest]) -> VerificationRequest:
    """Return requests, all of a kind, as one of all their robots, in their order."""
    if len(requests) == 1:
        return requests[0]
    seen, drafts = [each.observations for each in requests], [each.draft for each in requests]
    drawn = [each.distribution for each in drafts if each.distribution is not None]
    counts = [each.counts for each in drawn if each.counts is not None]
    codes = (
        sent_codes(np.concatenate([each.codes for each in drawn]), np.concatenate(counts)) if drawn else None
    )
    return VerificationRequest(
        Observations(
            _by_name([each.features for each in seen]),
            _by_name([each.conditions for each in seen]),
            tuple(instruction for each in seen for instruction in each.instructions),
            _by_name([each.images for each in seen]),
        ),
        Proposal(np.concatenate([each.actions for each in drafts]), codes),
        _committed(requests),
        _round_trips(requests),
    )


def _by_name(parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _committed(requests: Sequence[VerificationRequest]) -> np.ndarray | None:
    """Return what robots have committed to, (M, d, A), NaN behind the end of who has to less."""
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


def _round_trips(requests: Sequence[VerificationRequest]) -> np.ndarray | None:
    """Return what a round trip of each robot takes, (M,) ms, NaN where it is unknown; None where all are."""
    each_ms = [
        np.full(len(each.draft.actions), np.nan) if each.round_trip_ms is None else each.round_trip_ms
        for each in requests
    ]
    return None if all(each.round_trip_ms is None for each in requests) else np.concatenate(each_ms)


Verdicts = list[Verdict | Exception]
"""Of each robot of a batch its verdict (M = 1), or what keeps it from having one."""


@dataclass(frozen=True)
class Terms:
    """What others must know of a verifier.

    Attributes:
        signature: what the target reads and proposes.
        draws: how many uniform draws a verdict takes.
        rule: a key of `ACCEPTANCES`.
        acceptance: that rule.
        fingerprint: of the target's configuration and weights, see `fingerprint_of`.
    """

    signature: Signature
    draws: int
    rule: str
    acceptance: Acceptance
    fingerprint: str


class Verifier(Protocol):
    """Verifies drafts, here or elsewhere.

    Attributes:
        terms: what it verifies, and how.
        at_once: how many batches it verifies side by side.
    """

    terms: Terms
    at_once: int

    def submit(self, request: VerificationRequest, draws: np.ndarray, until_s: float) -> Future[Verdicts]:
        """Have M drafts verified with uniform draws (M, draws, 2); raises nothing.

        Args:
            request: of M robots.
            draws: of each.
            until_s: when the verdicts are of no use any more; by its own clock.

        Returns:
            What `TargetVerifier.verify_each` does; never an error.
        """


class TargetVerifier:
    """Verifies drafts by a target policy.

    What it returns by an exact rule is distributed as the target's own proposals where it gets every draft,
    or a share of them that does not depend on what was drawn; see `Gate.blind`.

    Attributes:
        policy: the target, or what is made of it.
        terms, at_once: see `Verifier`.

    Args:
        policy: the target.
        rule: see `rule_for`.
        temperature: of the target's distributions, above zero.
        sendable: see `Sampling`.
        agreement: a key of `AGREEMENTS`.
        samples: of how many plans to choose one.
        distance: of a rule that takes one: how far apart actions may be, in action scales of the policy.
        arguments: of the rule, by name.

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
        distance: float = WITHIN,
        arguments: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        rule = rule_for(rule, policy.signature)
        if not 0.0 < temperature < np.inf:
            raise ValueError(f"temperature: {temperature}, must be above 0 and finite")
        if agreement not in AGREEMENTS:
            raise ValueError(f"agreement: {agreement!r}, must be one of {', '.join(AGREEMENTS)}")
        if agreement == "choose" and ACCEPTANCES[rule].needs_codes:
            raise ValueError(
                f"agreement: 'choose', must be another with the rule {rule!r}, which is about codes"
            )
        self.policy = policy
        if agreement == "choose":
            from adahi_ros.server.nearest_sample import NearestPlan

            self.policy = NearestPlan(policy, samples)
        given: dict[str, Any] = dict(arguments)
        if ACCEPTANCES[rule].takes_distance:
            given["within"] = distance * policy.action_scale
        self.acceptance, fingerprint = made(rule, given), fingerprint_of(policy)
        self.acceptance.check_target(policy.signature, fingerprint)
        self.terms = Terms(policy.signature, self.policy.draws, rule, self.acceptance, fingerprint)
        self.at_once = 1
        self._sampling = Sampling(temperature, sendable)
        self._agrees = agreement != "none"

    def submit(self, request: VerificationRequest, draws: np.ndarray, until_s: float) -> Future[Verdicts]:
        """See `Verifier`; it is done when this returns."""
        verdicts: Future[Verdicts] = Future()
        verdicts.set_result(self.verify_each(request, draws))
        return verdicts

    def verify(self, request: VerificationRequest, draws: np.ndarray) -> Verdict:
        """Verify M drafts with uniform draws (M, policy.draws, 2).

        Raises:
            RequestError: the target makes nothing finite of an observation.
            ValueError: what came out is no verdict of the target's sizes.
        """
        verdict = self._checked(self.verdict(request, draws), len(draws))
        if not np.isfinite(verdict.actions).all():
            raise self._not_finite(request)
        return verdict

    def verify_each(self, request: VerificationRequest, draws: np.ndarray) -> Verdicts:
        """Verify M drafts with uniform draws (M, policy.draws, 2); raises nothing.

        Returns:
            Of each the verdict (M = 1), or what keeps it from having one. Where the policy raises for what
            one has sent, the others are asked about without it.
        """
        try:
            verdict = self._checked(self.verdict(request, draws), len(draws))
        except Exception as error:  # noqa: BLE001  a policy of another package may raise what it likes
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
        told = self._agrees and request.committed is not None
        return RequestError(
            RequestFault.NOT_FINITE,
            f"observation_window{' or draft_actions' if told else ''}: so far from the task's that the "
            "target's prediction is not finite",
        )

    def verdict(self, request: VerificationRequest, draws: np.ndarray) -> Verdict:
        """Verify M drafts; no numbers where the target makes nothing finite of an observation."""
        sampling = self._sampling
        if self._agrees and request.committed is not None:
            sampling = replace(sampling, committed=request.committed)
        proposal = self.policy.propose(request.observations, draws[..., 1], sampling)
        return self.acceptance.verify(request.draft, proposal, draws, request.round_trip_ms)

    def _checked(self, verdict: Verdict, robots: int) -> Verdict:
        """Return a verdict as what it should be: policy and rule may be another package's."""
        signature, needs_codes = self.policy.signature, self.acceptance.needs_codes
        with np.errstate(over="ignore"):  # infinite, then; that is told apart
            actions = np.asarray(verdict.actions, dtype=np.float32)
        accepted = np.asarray(verdict.accepted, dtype=bool)
        expected = robots, signature.horizon, signature.action_dim
        if actions.shape != expected:
            raise ValueError(f"actions: of shape {actions.shape}, must be {expected}, the target's")
        parts = accepted.shape[-1] if accepted.ndim == 2 else 0
        told = signature.codes.codebooks if needs_codes and signature.codes is not None else parts
        if accepted.shape != (robots, told) or told > PARTS_MOST:
            allowed = told if needs_codes else f"at most {PARTS_MOST}"
            raise ValueError(f"accepted: of shape {accepted.shape}, must be ({robots}, N), N {allowed}")
        return Verdict(actions, accepted)


def verification_stream(robot_id: str) -> str:
    """Name the stream of a robot's verification draws."""
    return f"verify/{robot_id}"


def verification_uniforms(seed: int, robot_id: str, episode: int, step: int, count: int) -> np.ndarray:
    """Return the draws (1, count, 2) of one robot's step, so that a repeated request gets the same reply."""
    draws = step_uniforms(seed, verification_stream(robot_id), episode, step, 2 * count)
    return draws.reshape(1, count, 2)


class VerificationDraws:
    """`verification_uniforms` for E episodes side by side, steps in order."""

    def __init__(self, seed: int, robot_id: str, episodes: list[int], count: int) -> None:
        self._streams = EpisodeStreams(seed, verification_stream(robot_id), episodes, 2 * count)
        self._count = count

    def next(self) -> np.ndarray:
        """Return the next step's draws (E, count, 2)."""
        draws = self._streams.next()
        return draws.reshape(len(draws), self._count, 2)

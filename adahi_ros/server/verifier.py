# SPDX-License-Identifier: Apache-2.0
"""The target's side of one batch: what it proposes itself, and what an acceptance rule makes of that."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from adahi_ros.acceptance.interface import WITHIN, Acceptance, Verdict
from adahi_ros.acceptance.registry import ACCEPTANCES, made, rule_for
from adahi_ros.core.randomness import EpisodeStreams, step_uniforms
from adahi_ros.core.signature import Signature
from adahi_ros.policies.interface import (
    Policy,
    Sampling,
    TargetUnavailableError,
    TooManyAtOnceError,
    fingerprint_of,
)
from adahi_ros.protocol.request import PARTS_MOST, RequestError, RequestFault
from adahi_ros.server.verification_request import VerificationRequest

SAMPLES = 8  # plans of which the agreement `choose` takes one
AGREEMENTS = {
    "none": "it plans as if it were heard at once",
    "continue": "it plans on from the actions that a robot has committed to; flow policies can",
    "choose": "of several plans it sends the one that is nearest to those that a robot has committed to",
}
"""What becomes of actions that a robot executes whatever is replied, because they come before a reply can."""


class Verifier(Protocol):
    """Verifies drafts, here or elsewhere.

    Attributes:
        signature: what the target reads and proposes.
        draws: how many uniform draws a verdict takes.
        rule: a key of `ACCEPTANCES`.
        acceptance: that rule.
        fingerprint: of the target's configuration and weights, see `fingerprint_of`.
        at_once: so many batches it verifies side by side.
    """

    signature: Signature
    draws: int
    rule: str
    acceptance: Acceptance
    fingerprint: str
    at_once: int

    def submit(
        self, request: VerificationRequest, draws: np.ndarray, until_s: float
    ) -> Future[list[Verdict | Exception]]:
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

    The others are those of `Verifier`.

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
        told: dict[str, Any] = dict(arguments)
        if ACCEPTANCES[rule].takes_distance:
            told["within"] = distance * policy.action_scale
        self.rule = rule
        self.acceptance = made(rule, told)
        self.fingerprint = fingerprint_of(policy)
        self.acceptance.check_target(policy.signature, self.fingerprint)
        self._sampling = Sampling(temperature, sendable)
        self._agrees = agreement != "none"
        self.signature = self.policy.signature
        self.draws = self.policy.draws
        self.at_once = 1

    def submit(
        self, request: VerificationRequest, draws: np.ndarray, until_s: float
    ) -> Future[list[Verdict | Exception]]:
        """See `Verifier`; it is done when this returns."""
        told: Future[list[Verdict | Exception]] = Future()
        told.set_result(self.verify_each(request, draws))
        return told

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

    def verify_each(self, request: VerificationRequest, draws: np.ndarray) -> list[Verdict | Exception]:
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
        return [
            verdict.rows(np.array([row])) if finite[row] else self._not_finite(request)
            for row in range(len(draws))
        ]

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

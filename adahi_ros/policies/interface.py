# SPDX-License-Identifier: Apache-2.0
"""The interface of policies: observations in, a proposal out. No torch here."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Observations, Ranges, Signature


@dataclass(frozen=True, eq=False)
class Sampling:
    """A policy's way to sample its proposals.

    Attributes:
        temperature: of its distributions, above zero; 1 is as it was trained.
        sendable: draw from distributions that can be sent in few bytes without loss, as a draft must,
            so that the verifier knows exactly the distribution that was sampled.
        committed: (B, d, A) float32 in action units, d at most the horizon: actions that the robots execute
            in any case, from the present step on; NaN after a robot's last one. Proposals continue from
            there, where a policy supports it; others ignore it. None where no robot has any.
    """

    temperature: float = 1.0
    sendable: bool = False
    committed: np.ndarray | None = None

    def rows(self, which: np.ndarray) -> Sampling:
        """Return the sampling of some robots, by mask or index."""
        return self if self.committed is None else replace(self, committed=self.committed[which])


AS_TRAINED = Sampling()
FINGERPRINT = "[0-9a-f]{16}"


class TargetUnavailableError(RuntimeError):
    """A policy that runs elsewhere proposes nothing now, but may do so later; the message says why.

    Attributes:
        retry_after_s: when to ask again, where that is known; else 0.
    """

    def __init__(self, why: str, retry_after_s: float = 0.0) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


class TooManyAtOnceError(TargetUnavailableError):
    """It proposes nothing for this many robots at once, but may for fewer: its memory is full."""


@runtime_checkable
class JudgingPolicy(Protocol):
    """A policy of codes, each of which depends on those before it."""

    def judge(
        self, observations: Observations, codes: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """Return the distribution of every code of drafts (B, n), given those before it."""


class Checks(Protocol):
    """Distinguishes actions from faults; see `Actor`."""

    @property
    def sound(self) -> Callable[[np.ndarray], np.ndarray]: ...
    @property
    def check(self) -> Callable[[np.ndarray], None]: ...


class Actor:
    """Knows what a robot may do.

    Attributes:
        sound: returns which of actions (B, T, A) it may propose, (B,) bool.
        check: raises ValueError for actions (B, T, A) that are not finite, or far outside its
            training range; names entry, value and what is allowed.
        device: where it computes, as text: such as cuda:0, or the address of its server.
        at_once: number of threads that may call it, each for one robot: more than 1 where its server
            batches by itself; 1 where all robots belong in one call.
        weights_known: false where its server does not identify its weights; then `digest`
            identifies only the request.
        ranges: of features and actions in its training data.

    Args:
        signature: what it reads and what it proposes.
        action_range: provides `sound` and `check`: an `ActionRange`, or another actor.
        action_scale: (A,) float32, standard deviation of the actions in its training data; the unit of the
            action deviation.
        digest: names its exact configuration and weights.
        draws: number of uniform draws per proposal.
    """

    sound: Callable[[np.ndarray], np.ndarray]
    check: Callable[[np.ndarray], None]
    device: str = "cpu"
    at_once: int = 1
    weights_known: bool = True
    ranges: tuple[Ranges, Ranges] = (Ranges(), Ranges())

    def __init__(
        self,
        signature: Signature,
        action_range: Checks,
        action_scale: np.ndarray,
        digest: str,
        draws: int = 0,
    ) -> None:
        self.signature = signature
        self.sound, self.check = action_range.sound, action_range.check
        self.action_scale = action_scale.astype(np.float32)
        self.digest = digest
        self.draws = draws


def fingerprint_of(actor: Actor) -> str:
    """Return 16 hexadecimal digits that identify configuration and weights; empty where unknown.

    Equal configuration and weights have the same fingerprint on any backend and with any number of bits.
    """
    if not actor.weights_known:
        return ""
    # A digest may be of any length: those of LeRobot's folders and of other packages are.
    same = re.fullmatch(FINGERPRINT, actor.digest)
    return actor.digest if same else hashlib.sha256(actor.digest.encode()).hexdigest()[:16]


class Policy(Actor, ABC):
    """Proposes actions from observations."""

    @abstractmethod
    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """Propose actions for B robots; NaN where it makes nothing finite of an observation.

        Args:
            observations: of B robots, as the signature says.
            draws: (B, draws) uniform in [0, 1).
            sampling: how to draw.

        Raises:
            TargetUnavailableError: it runs elsewhere, and no valid reply arrived.
        """

# SPDX-License-Identifier: Apache-2.0
"""The interface of acceptance rules, and their verdicts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Signature


@dataclass(frozen=True)
class Verdict:
    """The resulting actions of M robots.

    Attributes:
        actions: (M, T, A) float32 in action units.
        accepted: (M, N) bool, whether each part of the drafts was kept: for codes, one per codebook.
        intent: (M, Z) int8, what the target wants beyond its plan; None without an encoder of intents.
        asks: bytes for each of M robots, with which the rule asks for more of its data, see
            `DataRule.answered`; no bytes where it has decided. Empty if it asks none. Where it asks, the
            other fields do not count.
        codes: (M, N) int64, of the target's tokenizer, for these actions; None where they have none.
    """

    actions: np.ndarray
    accepted: np.ndarray
    intent: np.ndarray | None = None
    asks: tuple[bytes, ...] = ()
    codes: np.ndarray | None = None

    def rows(self, which: np.ndarray) -> Verdict:
        """Return the verdicts of some robots, by mask or index."""
        intent = None if self.intent is None else self.intent[which]
        asks = tuple(self.asks[row] for row in np.arange(len(self.asks))[which]) if self.asks else ()
        codes = None if self.codes is None else self.codes[which]
        return Verdict(self.actions[which], self.accepted[which], intent, asks, codes)


class LinkFacts(NamedTuple):
    """A robot's knowledge of its link when it sends a request; NaN where unknown.

    Attributes:
        round_trip_ms: without the verifier's compute.
        loss: share of lost requests.
    """

    round_trip_ms: float = math.nan
    loss: float = math.nan


class Acceptance(ABC):
    """A rule that decides about a draft, given the target's proposal. A new rule derives from this.

    Attributes:
        exact: the result is distributed as the target's own proposals, if the selection of drafts does
            not depend on the sampled codes.
        needs_codes: the draft's codes must be sent, with their distributions.
        gives_codes: a reply has the codes of its actions, where the target has a tokenizer.
        needs_actions: the draft's actions are sent, (M, 0, A) for robots without any, at the end of
            the target's plan.
        keeps_drafts: a completely accepted draft is executed unchanged, and a reply only has
            the actions after it.
        action_scale: (A,) of the target, set before the first draft.
        of_plans: a robot that executes the target's plans may have this rule.
        robot_parameters: parameters of the robot's node that this rule needs.
        lockstep_parameters: parameters of the verifier's node where a world waits for each command.
    """

    exact: bool = False
    needs_codes: bool = False
    gives_codes: bool = False
    needs_actions: bool = False
    keeps_drafts: bool = False
    action_scale: np.ndarray | float = 1.0
    of_plans: bool = False
    robot_parameters: ClassVar[Mapping[str, Any]] = {}
    lockstep_parameters: ClassVar[Mapping[str, Any]] = {}

    def check_target(self, target: Signature, fingerprint: str) -> None:  # noqa: B027
        """Refuse an unsuitable target; called before the first draft. By default none is refused.

        Args:
            target: its signature.
            fingerprint: of its policy (`fingerprint_of`), empty where that is unknown.

        Raises:
            ValueError: the rule was made for another target.
        """

    def compatible(self, draft: Signature, target: Signature) -> str | None:
        """Return the first difference between draft and target, with both values; None without one.

        By default it compares the size of an action and, for a rule that needs codes, the codes.
        """
        if self.needs_codes:
            return codes_differ(draft, target)
        return difference("action_dim", draft.action_dim, target.action_dim)

    @abstractmethod
    def verify(self, draft: Proposal, target: Proposal, draws: np.ndarray) -> Verdict:
        """Return the resulting actions.

        Args:
            draft: of M robots, as received; parts that the rule does not need may be missing.
            target: of the same robots, drawn by `draws[..., 1]`.
            draws: (M, N, 2) uniform in [0, 1).
        """


class DataRule(Acceptance):
    """A rule that reads data of its own (`Proposal.data`), which is sent instead of the distributions.

    Each code of the draft counts as certain.
    """

    @classmethod
    @abstractmethod
    def pack(cls, data: Mapping[str, np.ndarray], link: LinkFacts) -> bytes:
        """Return what a robot sends of the data of one draft (B = 1), 131072 bytes at most."""

    @abstractmethod
    def unpack(self, packed: bytes, codes: np.ndarray) -> dict[str, np.ndarray]:
        """Return the data (B = 1) that a robot sent with its codes (N,).

        Raises:
            ValueError: they are of the wrong size, or out of range.
        """

    @classmethod
    @abstractmethod
    def answered(cls, data: Mapping[str, np.ndarray], asked: bytes) -> dict[str, np.ndarray]:
        """Return the data (B = 1) to send after a reply that asked for more; see `Verdict.asks`.

        Raises:
            ValueError: the verifier's bytes are of the wrong size.
        """


def difference(name: str, draft: object, target: object) -> str | None:
    """Return an error if the two differ."""
    if draft == target:
        return None
    return f"{name}: the draft's is {draft}, the target's {target}; must be the same"


def codes_differ(draft: Signature, target: Signature) -> str | None:
    """Return the first difference between the codes of draft and target."""
    ours, theirs = draft.codes, target.codes
    if ours is None or theirs is None:
        kinds = ("none" if codes is None else "a tokenizer" for codes in (ours, theirs))
        return difference("codes", *kinds) or "codes: neither has a tokenizer"
    return (
        difference("tokenizer_fingerprint", ours.fingerprint, theirs.fingerprint)
        or difference("codebooks", ours.codebooks, theirs.codebooks)
        or difference("codebook_size", ours.codebook_size, theirs.codebook_size)
        or difference("horizon", draft.horizon, target.horizon)
        or difference("action_dim", draft.action_dim, target.action_dim)
    )

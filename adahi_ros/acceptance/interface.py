# SPDX-License-Identifier: Apache-2.0
"""What the target says to a proposal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Signature

WITHIN = 0.25  # action scales, the default of rules that take a distance


@dataclass(frozen=True)
class Verdict:
    """What M robots are to do.

    Attributes:
        actions: (M, T, A) float32 in action units.
        accepted: (M, N) bool, which parts of the drafts were kept: for codes, one for each codebook.
    """

    actions: np.ndarray
    accepted: np.ndarray

    def rows(self, which: np.ndarray) -> Verdict:
        """Return those of some robots, by mask or index."""
        return Verdict(self.actions[which], self.accepted[which])


class Acceptance(ABC):
    """A rule by which a target's proposal meets a draft. A new rule derives from this.

    Attributes:
        exact: what comes out is distributed as the target's own proposals, if which drafts are sent does
            not depend on what was drawn.
        needs_codes: the draft's codes must be sent, with their distributions.
        needs_actions: the draft's actions are sent, (M, 0, A) of robots that have none: they go by the
            target's plan, and it is over.
        keeps_drafts: a draft of which all parts are accepted is executed as it is, and a reply only says
            what comes after it.
        takes_distance: it is made with `within` (A,), how far apart actions may be, in action units.
        uses_link: `verify` reads the round trip.
    """

    exact: bool = False
    needs_codes: bool = False
    needs_actions: bool = False
    keeps_drafts: bool = False
    takes_distance: bool = False
    uses_link: bool = False

    def check_target(self, target: Signature, fingerprint: str) -> None:  # noqa: B027
        """Refuse a target that this was not made for; called before the first draft. By default none is.

        Args:
            target: its signature.
            fingerprint: of its policy (`fingerprint_of`), empty where that is unknown.

        Raises:
            ValueError: it was made for another one.
        """

    def compatible(self, draft: Signature, target: Signature) -> str | None:
        """Name the first thing that keeps draft and target apart, with both values; None where none does.

        By default that is the size of an action and, of a rule that needs codes, what these mean.
        """
        if self.needs_codes:
            return codes_differ(draft, target)
        return difference("action_dim", draft.action_dim, target.action_dim)

    @abstractmethod
    def verify(
        self,
        draft: Proposal,
        target: Proposal,
        draws: np.ndarray,
        round_trip_ms: np.ndarray | None = None,
    ) -> Verdict:
        """Return what is to be done.

        Args:
            draft: of M robots, as it was sent; what the rule does not need may be missing.
            target: of the same robots, drawn by `draws[..., 1]`.
            draws: (M, N, 2) uniform in [0, 1).
            round_trip_ms: (M,), what a round trip takes now, NaN of robots where that is unknown; None where
                no rule of this target reads it.
        """


def difference(name: str, draft: object, target: object) -> str | None:
    """Say that both must be the same, if they are not."""
    if draft == target:
        return None
    return f"{name}: the draft's is {draft}, the target's {target}; must be the same"


def codes_differ(draft: Signature, target: Signature) -> str | None:
    """Name the first thing by which codes of one do not mean the same actions to the other."""
    ours, theirs = draft.codes, target.codes
    if ours is None or theirs is None:
        kind = {True: "none", False: "a tokenizer"}
        return (
            difference("codes", kind[ours is None], kind[theirs is None]) or "codes: neither has a tokenizer"
        )
    return (
        difference("tokenizer_fingerprint", ours.fingerprint, theirs.fingerprint)
        or difference("codebooks", ours.codebooks, theirs.codebooks)
        or difference("codebook_size", ours.codebook_size, theirs.codebook_size)
        or difference("horizon", draft.horizon, target.horizon)
        or difference("action_dim", draft.action_dim, target.action_dim)
    )

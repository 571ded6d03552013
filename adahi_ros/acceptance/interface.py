# SPDX-License-Identifier: Apache-2.0
"""The interface of acceptance rules, and their verdicts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Signature

WITHIN = 0.25  # action scales, the default of rules that take a distance


@dataclass(frozen=True)
class Verdict:
    """The resulting actions of M robots.

    Attributes:
        actions: (M, T, A) float32 in action units.
        accepted: (M, N) bool, whether each part of the drafts was kept: for codes, one per codebook.
        intent: (M, Z) int8, what the target wants beyond its plan; None without an encoder of intents.
        wanted: (M, N) bool, parts of which the rule needs the draft's hidden states before it decides; then
            the other fields do not count. None for a rule that needs none.
    """

    actions: np.ndarray
    accepted: np.ndarray
    intent: np.ndarray | None = None
    wanted: np.ndarray | None = None

    def rows(self, which: np.ndarray) -> Verdict:
        """Return the verdicts of some robots, by mask or index."""
        intent = None if self.intent is None else self.intent[which]
        wanted = None if self.wanted is None else self.wanted[which]
        return Verdict(self.actions[which], self.accepted[which], intent, wanted)


class Acceptance(ABC):
    """A rule that decides about a draft, given the target's proposal. A new rule derives from this.

    Attributes:
        exact: the result is distributed as the target's own proposals, if the selection of drafts does
            not depend on the sampled codes.
        needs_codes: the draft's codes must be sent, with their distributions.
        needs_actions: the draft's actions are sent, (M, 0, A) for robots without any, at the end of
            the target's plan.
        needs_states: the draft's hidden states are sent, at once or where `Verdict.wanted` says so.
        state_size: numbers of a hidden state.
        keeps_drafts: a completely accepted draft is executed unchanged, and a reply only has
            the actions after it.
        takes_distance: its argument `within` (A,) is the largest distance of actions, in action units.
        uses_link: `verify` reads the round trip.
    """

    exact: bool = False
    needs_codes: bool = False
    needs_actions: bool = False
    needs_states: bool = False
    state_size: int = 0
    keeps_drafts: bool = False
    takes_distance: bool = False
    uses_link: bool = False

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
    def verify(
        self,
        draft: Proposal,
        target: Proposal,
        draws: np.ndarray,
        round_trip_ms: np.ndarray | None = None,
    ) -> Verdict:
        """Return the resulting actions.

        Args:
            draft: of M robots, as received; parts that the rule does not need may be missing.
            target: of the same robots, drawn by `draws[..., 1]`.
            draws: (M, N, 2) uniform in [0, 1).
            round_trip_ms: (M,), the present round trip, NaN for robots where it is unknown; None where
                no rule of this target reads it.
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

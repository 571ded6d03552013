# SPDX-License-Identifier: Apache-2.0
"""Drafts that the target verifies: requests of robots after their check, joined for one batch."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from adahi_ros.acceptance.interface import Acceptance
from adahi_ros.core.proposal import UNITS, CodeDistribution, Proposal
from adahi_ros.core.signature import CodeSpace, Observations, Signature
from adahi_ros.protocol.request import (
    NOTHING,
    UNKNOWN_MS,
    RequestError,
    RequestFault,
    check_finite,
    check_size,
    sent_codes,
)

NO_IMAGES: Mapping[str, np.ndarray] = {}


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


def _check_codes(space: CodeSpace | None, codes: np.ndarray, counts: np.ndarray) -> CodeDistribution:
    """Return drafted codes with their distributions of flat arrays; one draft's."""
    books, size = (0, 0) if space is None else (space.codebooks, space.codebook_size)
    check_size("codes", codes.size, (books,))
    for index, code in enumerate(codes.tolist()):
        if not 0 <= code < size:
            raise RequestError(
                RequestFault.CODE_OUT_OF_RANGE,
                f"codes[{index}]: {code}, must be at least 0 and below {size}",
            )
    check_size("draft_probabilities", counts.size, (books, size))
    counts = counts.reshape(books, size)
    sums = counts.sum(axis=-1, dtype=np.int64)
    if counts.min() < 0 or (sums != UNITS).any():
        raise RequestError(
            RequestFault.NOT_A_DISTRIBUTION,
            f"draft_probabilities: rows sum to {sums.tolist()} with smallest entry "
            f"{counts.min()}, must sum to {UNITS} and not be negative",
        )
    impossible = np.flatnonzero(counts[np.arange(books), codes] == 0)
    if impossible.size:
        index = impossible[0]
        raise RequestError(
            RequestFault.CODE_OUT_OF_RANGE,
            f"codes[{index}]: {codes[index]}, drafted with probability 0, must be one that "
            "draft_probabilities has more than 0 for",
        )
    return sent_codes(codes[None].astype(np.int64, copy=False), counts[None].astype(np.uint16))


def check_request(
    signature: Signature,
    rule: Acceptance,
    window: np.ndarray,
    goal: np.ndarray,
    codes: np.ndarray,
    counts: np.ndarray,
    actions: np.ndarray = NOTHING,
    instruction: str = "",
    ahead: int = 0,
    images: Mapping[str, np.ndarray] = NO_IMAGES,
    round_trip_ms: float = UNKNOWN_MS,
) -> VerificationRequest:
    """Make one robot's request of a window and flat arrays, or refuse it.

    Args:
        signature: the target's.
        rule: by which its proposals meet drafts.
        window: (H, O) float32, finite: what `WindowCache.complete` made of what was sent.
        goal: (G,), the conditions.
        codes: (N,) integers; empty where there are none.
        counts: (N * K,) integers, the draft's probabilities as `distribution.counted` rounds them; empty
            without codes.
        actions: (T * A,) of the draft; empty where they were not sent, or there are none.
        instruction: in a sentence.
        ahead: how many control steps after its own the reply begins; what was sent of the draft for these,
            the robot has committed to.
        images: by name, (H, rows, columns, 3) uint8, those that the target reads as they are.
        round_trip_ms: what one takes now, or `UNKNOWN_MS`; one that `check_round_trip` lets pass.

    Raises:
        RequestError: wrong size, not finite, a code out of range or never drafted, or not distributions.
    """
    check_size("goal", goal.size, (signature.goal_dim,))
    check_finite("goal", goal)
    observations = signature.observations(window[None], goal[None].astype(np.float32))
    if signature.instruction:
        observations = replace(observations, instructions=(_told(instruction),))
    if signature.images:
        shown = {each.name: images[each.name][None] for each in signature.images}
        observations = replace(observations, images=shown)
    if rule.needs_codes or codes.size or counts.size:
        drawn = _check_codes(signature.codes, codes, counts)
    else:
        drawn = None
    drafted = _check_actions(signature, actions)
    committed = drafted[:, :ahead] if ahead and drafted.size else None
    trip = None if round_trip_ms == UNKNOWN_MS else np.array([round_trip_ms])
    return VerificationRequest(observations, Proposal(drafted, drawn), committed, trip)


def _told(instruction: str) -> str:
    if not instruction.strip():
        raise RequestError(
            RequestFault.NO_INSTRUCTION,
            "instruction: empty, must say what to do: the target is told in a sentence",
        )
    return instruction


def _check_actions(signature: Signature, actions: np.ndarray) -> np.ndarray:
    """Return actions (1, T, A) float32 of flat ones; T is 0 of a robot that has none to be judged."""
    size = signature.action_dim
    if actions.size % size:
        raise RequestError(
            RequestFault.WRONG_SHAPE, f"draft_actions: {actions.size} values, must be a multiple of {size}"
        )
    check_finite("draft_actions", actions)
    return actions.astype(np.float32, copy=False).reshape(1, -1, size)


def kind_of(request: VerificationRequest) -> Hashable:
    """Return what is the same of requests that `joined` can join: which parts of a draft they have."""
    return request.draft.actions.shape[1], request.draft.distribution is None


def joined(requests: Sequence[VerificationRequest]) -> VerificationRequest:
    """Return requests, all of a kind, as one of all their robots, in their order."""
    if len(requests) == 1:
        return requests[0]
    return VerificationRequest(
        _observations([each.observations for each in requests]),
        _drafts([each.draft for each in requests]),
        _committed(requests),
        _round_trips(requests),
    )


def _observations(each: Sequence[Observations]) -> Observations:
    first = each[0]
    return Observations(
        {name: np.concatenate([other.features[name] for other in each]) for name in first.features},
        {name: np.concatenate([other.conditions[name] for other in each]) for name in first.conditions},
        tuple(one for other in each for one in other.instructions),
        {name: np.concatenate([other.images[name] for other in each]) for name in first.images},
    )


def _drafts(drafts: Sequence[Proposal]) -> Proposal:
    actions = np.concatenate([each.actions for each in drafts])
    drawn = [each.distribution for each in drafts if each.distribution is not None]
    if not drawn:
        return Proposal(actions)
    counts = [each.counts for each in drawn if each.counts is not None]
    return Proposal(
        actions, sent_codes(np.concatenate([each.codes for each in drawn]), np.concatenate(counts))
    )


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
    """Return what a round trip of each robot takes, (M,) ms, NaN of those of which nobody knows."""
    if all(each.round_trip_ms is None for each in requests):
        return None
    return np.concatenate(
        [
            np.full(len(each.draft.actions), np.nan) if each.round_trip_ms is None else each.round_trip_ms
            for each in requests
        ]
    )

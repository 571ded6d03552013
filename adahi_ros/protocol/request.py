# SPDX-License-Identifier: Apache-2.0
"""What travels to the verifier and back, and what makes a request fit to be verified."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from adahi_ros.acceptance.interface import Acceptance, Verdict
from adahi_ros.core.proposal import UNITS, CodeDistribution, Proposal, probabilities_of
from adahi_ros.core.signature import CodeSpace, Observations, Signature

PROTOCOL_VERSION = 6
"""Of the messages. Another one means another thing by the same bytes."""
UNKNOWN_MS = 0.0
"""In the place of a round trip that nobody knows."""
ROUND_TRIP_MS = (1e-3, 60_000.0)
"""The least and the most that is told of one."""
NOTHING = np.empty(0, dtype=np.float32)
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


class RequestFault(IntEnum):
    """Why a request is refused. The numbers are those of `VerifyDraft.srv`."""

    TOKENIZER_MISMATCH = 1
    WRONG_SHAPE = 2
    NOT_FINITE = 3
    CODE_OUT_OF_RANGE = 4
    NOT_A_DISTRIBUTION = 5
    WINDOW_UNKNOWN = 7
    PROTOCOL_MISMATCH = 8
    UNKNOWN_TARGET = 9
    SUPERSEDED = 10
    TARGET_UNAVAILABLE = 11
    NO_INSTRUCTION = 12
    BUSY = 13
    UNKNOWN_ROBOT = 14


class RequestError(ValueError):
    """A request that cannot be verified; the message names the field, the value and what was allowed."""

    def __init__(self, fault: RequestFault, message: str) -> None:
        super().__init__(message)
        self.fault = fault

    def __reduce__(self) -> tuple[type[RequestError], tuple[RequestFault, str]]:
        """See `object`; between the processes of one verifier, errors are values."""
        return RequestError, (self.fault, str(self))


def check_protocol(version: int) -> None:
    """Check the version that a request was made by, before anything else of it is read.

    Raises:
        RequestError: it is another.
    """
    if version != PROTOCOL_VERSION:
        raise RequestError(
            RequestFault.PROTOCOL_MISMATCH,
            f"protocol: the request's is {version}, the verifier's {PROTOCOL_VERSION}; must be the same",
        )


def reported_round_trip_ms(measured_ms: float) -> float:
    """Return what is sent of a round trip as it was measured, NaN where it was not: `UNKNOWN_MS` then."""
    least, most = ROUND_TRIP_MS
    return UNKNOWN_MS if math.isnan(measured_ms) else min(max(measured_ms, least), most)


def check_round_trip(told_ms: float) -> None:
    """Check what was sent of a round trip.

    Raises:
        RequestError: it can be none.
    """
    if not math.isfinite(told_ms):
        raise RequestError(RequestFault.NOT_FINITE, f"round_trip_ms: {told_ms}, must be finite")
    if not UNKNOWN_MS <= told_ms <= ROUND_TRIP_MS[1]:
        allowed = f"from 0 to {ROUND_TRIP_MS[1]:g}"
        raise RequestError(RequestFault.WRONG_SHAPE, f"round_trip_ms: {told_ms:g}, must be {allowed}")


def check_finite(field: str, values: np.ndarray) -> None:
    """Check float16 or float32 values.

    Raises:
        RequestError: one is not finite.
    """
    # Summed up, for that is quicker: no finite float32 values, as many as there are, add up to infinity.
    if not math.isfinite(values.sum(dtype=np.float64)):
        index = int(np.flatnonzero(~np.isfinite(values.ravel()))[0])
        raise RequestError(
            RequestFault.NOT_FINITE, f"{field}[{index}]: {values.ravel()[index]}, must be finite"
        )


def _check_size(field: str, size: int, shape: tuple[int, ...]) -> None:
    expected = math.prod(shape)
    if size != expected:
        raise RequestError(
            RequestFault.WRONG_SHAPE, f"{field}: {size} values, expected {expected} for shape {shape}"
        )


def _check_codes(space: CodeSpace | None, codes: np.ndarray, counts: np.ndarray) -> CodeDistribution:
    """Return drafted codes with their distributions of flat arrays; one draft's."""
    books, size = (0, 0) if space is None else (space.codebooks, space.codebook_size)
    _check_size("codes", codes.size, (books,))
    for index, code in enumerate(codes.tolist()):
        if not 0 <= code < size:
            raise RequestError(
                RequestFault.CODE_OUT_OF_RANGE,
                f"codes[{index}]: {code}, must be at least 0 and below {size}",
            )
    _check_size("draft_probabilities", counts.size, (books, size))
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
    _check_size("goal", goal.size, (signature.goal_dim,))
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
    heard = None if round_trip_ms == UNKNOWN_MS else np.array([round_trip_ms])
    return VerificationRequest(observations, Proposal(drafted, drawn), committed, heard)


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


def sent_codes(codes: np.ndarray, counts: np.ndarray) -> CodeDistribution:
    """Return drafted codes (M, N) with their distributions (M, N, K), as whoever verifies them knows them."""
    return CodeDistribution(probabilities_of(counts), codes, _unknown_actions, counts)


def _unknown_actions(codes: np.ndarray) -> np.ndarray:
    raise ValueError("actions: of a draft's codes, are known to the draft alone")


def check_reply(
    target: Signature, ahead: int, parts: int | None, accepted: Sequence[bool], actions: Sequence[float]
) -> Verdict:
    """Make one robot's verdict of what came, or refuse it.

    Args:
        target: what the target proposes.
        ahead: of how many control steps, from that of the request on, the reply leaves out the actions.
        parts: N, of the draft, that are judged; None where the rule says how many.
        accepted: N.
        actions: (T - ahead) * A.

    Raises:
        RequestError: wrong size, or not finite.
    """
    # Without arrays until all is well: the robot waits, and for so few values they would take longer.
    if parts is not None:
        _check_size("accepted", len(accepted), (parts,))
    shape = (target.horizon - ahead, target.action_dim)
    _check_size("actions", len(actions), shape)
    if not math.isfinite(sum(actions)):  # no sum of finite float32 values is infinite as a double
        index, value = next(each for each in enumerate(actions) if not math.isfinite(each[1]))
        raise RequestError(RequestFault.NOT_FINITE, f"actions[{index}]: {value}, must be finite")
    return Verdict(
        np.array(actions, dtype=np.float32).reshape(1, *shape),
        np.array(accepted, dtype=bool).reshape(1, len(accepted)),
    )

"""What travels to the verifier and back, and what makes a request fit to be answered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from adahi_ros.policy.distribution import UNITS, probabilities_of
from adahi_ros.policy.interface import PolicySpec
from adahi_ros.policy.vqbet.decoder import ActionDecoder


@dataclass(frozen=True)
class VerificationRequest:
    """Drafts of M robots, to be verified.

    Attributes:
        windows: (M, H, O) float32.
        goals: (M, G) float32.
        codes: (M, N) int64.
        counts: (M, N, K) uint16, the distributions that the codes were sampled from, in units of 1/UNITS.
    """

    windows: np.ndarray
    goals: np.ndarray
    codes: np.ndarray
    counts: np.ndarray

    @property
    def probabilities(self) -> np.ndarray:
        """(M, N, K) float32, the same distributions."""
        return probabilities_of(self.counts)


@dataclass(frozen=True)
class Verification:
    """The target's answer for M drafts.

    Attributes:
        codes: (M, N) int64, what to execute.
        accepted: (M, N) bool, whether each drafted code was kept.
        offset: (M, W, A) float32 in action units, the target's at those codes.
    """

    codes: np.ndarray
    accepted: np.ndarray
    offset: np.ndarray

    def chunks(self, decoder: ActionDecoder) -> np.ndarray:
        """Return the action chunks (M, W, A) to execute."""
        chunks: np.ndarray = decoder.decode(self.codes) + self.offset
        return chunks

    def rows(self, which: np.ndarray) -> Verification:
        """Return the answer for some of the drafts, by mask or index."""
        return Verification(self.codes[which], self.accepted[which], self.offset[which])


class RequestFault(IntEnum):
    """Why a request is refused. The numbers are those of `VerifyDraft.srv`."""

    TOKENIZER_MISMATCH = 1
    WRONG_SHAPE = 2
    NOT_FINITE = 3
    CODE_OUT_OF_RANGE = 4
    NOT_A_DISTRIBUTION = 5
    WINDOW_UNKNOWN = 7


class RequestError(ValueError):
    """A request that cannot be answered; the message names the field, the value and what was allowed."""

    def __init__(self, fault: RequestFault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


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


def _check_codes(spec: PolicySpec, codes: Sequence[int] | np.ndarray) -> None:
    _check_size("codes", len(codes), (spec.codebooks,))
    for index, code in enumerate(codes):
        if not 0 <= code < spec.codebook_size:
            raise RequestError(
                RequestFault.CODE_OUT_OF_RANGE,
                f"codes[{index}]: {code}, must be at least 0 and below {spec.codebook_size}",
            )


def check_request(
    spec: PolicySpec, window: np.ndarray, goal: np.ndarray, codes: np.ndarray, counts: np.ndarray
) -> VerificationRequest:
    """Make one robot's request of a window and flat arrays, or refuse it.

    Args:
        spec: the target's sizes.
        window: (H, O) float32, finite: what `WindowCache.complete` made of what was sent.
        goal: (G,).
        codes: (N,) integers.
        counts: (N * K,) integers, the draft's probabilities as `sampling.counted` rounds them.

    Raises:
        RequestError: wrong size, not finite, a code out of range or never drafted, or not distributions.
    """
    books, size = spec.codebooks, spec.codebook_size
    _check_size("goal", goal.size, (spec.goal_dim,))
    check_finite("goal", goal)
    _check_codes(spec, codes)
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
    return VerificationRequest(
        window[None],
        goal[None].astype(np.float32),
        codes[None].astype(np.int64, copy=False),
        counts[None].astype(np.uint16),
    )


def check_answer(
    spec: PolicySpec, codes: Sequence[int], accepted: Sequence[bool], offset: Sequence[float]
) -> Verification:
    """Make one robot's verification of what came, or refuse it.

    Args:
        spec: the draft's sizes.
        codes: N.
        accepted: N.
        offset: W * A.

    Raises:
        RequestError: wrong size, not finite, or a code out of range.
    """
    # Without arrays until all is well: the robot waits, and for so few values they would take longer.
    _check_codes(spec, codes)
    _check_size("accepted", len(accepted), (spec.codebooks,))
    shape = (spec.chunk_length, spec.action_dim)
    _check_size("offset", len(offset), shape)
    if not math.isfinite(sum(offset)):  # no sum of finite float32 values is infinite as a double
        index, value = next(each for each in enumerate(offset) if not math.isfinite(each[1]))
        raise RequestError(RequestFault.NOT_FINITE, f"offset[{index}]: {value}, must be finite")
    return Verification(
        np.array([codes], dtype=np.int64),
        np.array([accepted], dtype=bool),
        np.array(offset, dtype=np.float32).reshape(1, *shape),
    )

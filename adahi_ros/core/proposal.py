# SPDX-License-Identifier: Apache-2.0
"""A policy's proposal: actions, their distribution, and the range of valid actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class CodeDistribution:
    """The distributions of an action's codes, one per codebook.

    Attributes:
        probabilities: (B, N, K) float32.
        codes: (B, N) int64, drawn.
        actions_of: from codes (B, N) to the policy's actions (B, T, A) for them.
        counts: (B, N, K) uint16, the same distributions in units of 1/UNITS, where they were rounded
            to be sent; else None.
    """

    probabilities: np.ndarray
    codes: np.ndarray
    actions_of: Callable[[np.ndarray], np.ndarray]
    counts: np.ndarray | None = None

    def decided(self, draft: CodeDistribution, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Accept or resample a draft's codes, so that they are distributed as these of a target.

        Args:
            draft: of M robots, n codes at most.
            draws: (M, N, 2) uniform in [0, 1).

        Returns:
            Codes (M, N) int64, and whether each of the draft's was accepted (M, n) bool. None where codes are
            independent: the rule tests each by itself.
        """
        return None


@dataclass(frozen=True)
class Proposal:
    """Actions of B robots for T control steps, from the present one on.

    Attributes:
        actions: (B, T, A) float32 in action units.
        distribution: of the actions; None where there is none.
        expected_error: (B,) in action scales, expected distance of the first actions from those of a
            fresh plan; None if unknown.
        change: (B,) in action scales, how far the newest reply moved the first actions; NaN where none came
            since the step before; None if unknown.
        data: (B, ...) arrays by name, what a rule reads besides; see `DataRule`.
    """

    actions: np.ndarray
    distribution: CodeDistribution | None = None
    expected_error: np.ndarray | None = None
    change: np.ndarray | None = None
    data: Mapping[str, np.ndarray] = field(default_factory=dict)


def rows_of(data: Mapping[str, np.ndarray], which: np.ndarray) -> dict[str, np.ndarray]:
    """Return the data of some robots, by mask or index."""
    return {name: each[which] for name, each in data.items()}


UNITS = 65535  # units of a transmitted distribution: the largest uint16


def softmax(logits: np.ndarray, temperature: float) -> np.ndarray:
    """Return the distributions (..., K) float32 of logits (..., K) at a temperature above zero."""
    below_best = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    with np.errstate(over="ignore", under="ignore"):  # near temperature zero, all except the best are e^-inf
        weights = np.exp(below_best / temperature)
    probabilities: np.ndarray = (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)
    return probabilities


def counted(probabilities: np.ndarray) -> np.ndarray:
    """Round distributions to multiples of 1/UNITS: two bytes each when sent, and exact.

    Sampling from the rounded distributions (`probabilities_of`) and sending them loses nothing: speculative
    sampling only requires that p is the sampled distribution. Rounding changes the draft, each
    distribution by a total variation of K / (2 UNITS) at most.

    Args:
        probabilities: (..., K), each row summing to one to rounding.

    Returns:
        (..., K) uint16, each row summing to UNITS, each entry off by less than one unit.
    """
    steps = np.rint(np.cumsum(probabilities, axis=-1, dtype=np.float64) * UNITS)
    steps[..., -1] = UNITS
    counts: np.ndarray = np.diff(steps, axis=-1, prepend=0.0).astype(np.uint16)
    return counts


def probabilities_of(counts: np.ndarray) -> np.ndarray:
    """Return the distributions (..., K) float32 that `counted` rounded to."""
    return np.divide(counts, UNITS, dtype=np.float32)


def sample(weights: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Draw from distributions by their inverse cumulative sum.

    Args:
        weights: (..., K), not negative, each row with a positive sum.
        uniforms: (...), in [0, 1).

    Returns:
        (...) int64. Never an index of weight zero.
    """
    cumulative = np.cumsum(weights, axis=-1, dtype=np.float64)
    threshold = uniforms[..., None] * cumulative[..., -1:]
    codes: np.ndarray = (threshold >= cumulative).sum(axis=-1)
    return codes


def residual(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return max(0, q - p) (..., K), the paper's equation (7) before it is normalised.

    Where this is numerically zero, q itself: p and q are then equal to rounding.
    """
    left = np.maximum(q.astype(np.float64) - p.astype(np.float64), 0.0)
    return np.where(left.sum(axis=-1, keepdims=True) > 0.0, left, q)


def probabilities_at(probabilities: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the probabilities (..., N) of codes (..., N) in distributions (..., N, K)."""
    return np.take_along_axis(probabilities, codes[..., None], axis=-1)[..., 0]


class ActionRange:
    """Distinguishes actions from faults.

    Args:
        low, high: (A,) in action units; anything beyond is no action.
    """

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self.low = low
        self.high = high

    def sound(self, actions: np.ndarray) -> np.ndarray:
        """Return which of actions (B, T, A) are from `low` to `high`, (B,) bool."""
        return np.asarray(self._inside(actions).all(axis=(1, 2)))

    def check(self, actions: np.ndarray) -> None:
        """Refuse actions (B, T, A).

        Raises:
            ValueError: one is not finite, or not from `low` to `high`.
        """
        inside = self._inside(actions)
        if not inside.all():
            row, ahead, index = np.argwhere(~inside)[0]
            raise ValueError(
                f"action[{index}]: {actions[row, ahead, index]:.4g}, must be from {self.low[index]:.4g} "
                f"to {self.high[index]:.4g}"
            )

    def _inside(self, actions: np.ndarray) -> np.ndarray:
        return np.asarray((actions >= self.low) & (actions <= self.high))  # false for NaN

# SPDX-License-Identifier: Apache-2.0
"""Distributions over action codes: made of logits, rounded for the air, drawn from.

Nothing here draws: the caller passes uniform draws, so every result can be repeated.
"""

from __future__ import annotations

import numpy as np

UNITS = 65535  # that a distribution on the air is counted in: the largest uint16


def softmax(logits: np.ndarray, temperature: float) -> np.ndarray:
    """Return the distributions (..., K) float32 of logits (..., K) at a temperature above zero."""
    below_best = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    with np.errstate(over="ignore", under="ignore"):  # near temperature zero, all but the best are e^-inf
        weights = np.exp(below_best / temperature)
    probabilities: np.ndarray = (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)
    return probabilities


def counted(probabilities: np.ndarray) -> np.ndarray:
    """Round distributions to whole units of 1/UNITS: two bytes each on the air, and exact.

    Whoever samples from the rounded distributions (`probabilities_of`) and sends them loses nothing:
    speculative sampling asks only that p is what the codes were drawn from. What rounding changes is the
    draft, each distribution by a total variation of K / (2 UNITS) at most.

    Args:
        probabilities: (..., K), each row summing to one to rounding.

    Returns:
        (..., K) uint16, each row summing to UNITS, each entry less than one unit off.
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


def probabilities_at(probabilities: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the probabilities (..., N) of codes (..., N) in distributions (..., N, K)."""
    return np.take_along_axis(probabilities, codes[..., None], axis=-1)[..., 0]

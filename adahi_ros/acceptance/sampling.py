"""Speculative sampling of action codes.

Leviathan et al., "Fast inference from transformers via speculative decoding" (2023), section 2.3;
the ADAHI paper, section III-B1. Codebooks are independent, so each is tested by itself.

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


def rejection_probability(p: np.ndarray, q: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return how likely `speculative_sample` rejects each code: 1 - min(1, q/p), the paper's equation (8).

    Args:
        p: (..., N, K), the distributions that the codes were sampled from.
        q: (..., N, K), the target's.
        codes: (..., N).

    Returns:
        (..., N) float64.
    """
    p_code = probabilities_at(p, codes).astype(np.float64)
    q_code = probabilities_at(q, codes).astype(np.float64)
    kept = np.divide(q_code, p_code, out=np.ones_like(q_code), where=p_code > q_code)
    rejected: np.ndarray = 1.0 - kept
    return rejected


def residual(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return max(0, q - p) (..., K), the paper's equation (7) before it is normalised.

    Where nothing is left numerically, q itself: p and q are then the same to rounding.
    """
    left = np.maximum(q.astype(np.float64) - p.astype(np.float64), 0.0)
    return np.where(left.sum(axis=-1, keepdims=True) > 0.0, left, q)


def speculative_sample(
    p: np.ndarray, q: np.ndarray, codes: np.ndarray, uniforms: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Accept or resample codes so that what comes out is distributed as q.

    That holds of all codes that are sampled from p. Of some of them that were selected for what they are, as
    gates do that look at them (all but `gates.BLIND`), it does not: they are no sample of p.

    Args:
        p: (..., N, K), the distributions that the codes were sampled from.
        q: (..., N, K), the target's.
        codes: (..., N).
        uniforms: (..., N, 2), in [0, 1): for the test, for the resampling.

    Returns:
        codes (..., N) int64 and whether each was accepted (..., N) bool.
    """
    p_code = probabilities_at(p, codes).astype(np.float64)
    q_code = probabilities_at(q, codes).astype(np.float64)
    # u < min(1, q/p), without the division: right for p = 0 too, and always true for q = p > 0.
    accepted = uniforms[..., 0] * p_code < q_code
    resampled = sample(residual(p, q), uniforms[..., 1])
    return np.where(accepted, codes, resampled), accepted

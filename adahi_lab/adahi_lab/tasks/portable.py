# SPDX-License-Identifier: Apache-2.0
"""Arithmetic that gives the same bits on every machine and in every batch.

IEEE 754 defines the rounding of sums, products and square roots. Library sines, logarithms and reductions
differ in the last bit between processors. Closed-loop control amplifies that to centimetres, so
(seed, number) would not identify one episode.
"""

from __future__ import annotations

import numpy as np

UNIFORMS_PER_DRAW = 4


def bell_noise(uniforms: np.ndarray) -> np.ndarray:
    """Turn uniform draws into noise of mean 0 and variance 1, within +-3.47, near a normal one.

    The sum of four uniform draws (Irwin-Hall distribution), scaled.

    Args:
        uniforms: (E, 4 K) in [0, 1).

    Returns:
        (E, K).

    Raises:
        ValueError: the second dimension is not a multiple of four.
    """
    if uniforms.ndim != 2 or uniforms.shape[1] % UNIFORMS_PER_DRAW:
        raise ValueError(f"uniforms: shape {uniforms.shape}, expected (E, a multiple of {UNIFORMS_PER_DRAW})")
    first, second, third, fourth = np.split(uniforms, UNIFORMS_PER_DRAW, axis=1)
    noise: np.ndarray = (first + second + third + fourth - 2.0) * np.sqrt(3.0)
    return noise


def sine_of_small(angle: np.ndarray) -> np.ndarray:
    """Return the sine, within 1e-12 for |angle| <= 0.5 rad: its Taylor series to the eleventh power."""
    square = angle * angle
    series = 1.0 - square / 72.0 * (1.0 - square / 110.0)
    sine: np.ndarray = angle * (1.0 - square / 6.0 * (1.0 - square / 20.0 * (1.0 - square / 42.0 * series)))
    return sine


def polar(radius: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Return the points (..., 2) at radii (...) and angles (...), |angle| < 16 rad."""
    sine = sine_of_small(angle / 32.0)
    cosine = np.sqrt(1.0 - sine * sine)
    for _ in range(5):  # doubling the angle five times undoes the division
        sine, cosine = 2.0 * sine * cosine, cosine * cosine - sine * sine
    return np.stack([radius * cosine, radius * sine], axis=-1)


def dot(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the inner products (...) of vectors (..., 2)."""
    product: np.ndarray = left[..., 0] * right[..., 0] + left[..., 1] * right[..., 1]
    return product


def norm(vectors: np.ndarray) -> np.ndarray:
    """Return the lengths (...) of vectors (..., 2)."""
    length: np.ndarray = np.sqrt(dot(vectors, vectors))
    return length

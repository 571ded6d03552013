# SPDX-License-Identifier: Apache-2.0
"""How fast a controller's curve is, and where an arm can stop."""

from __future__ import annotations

import numpy as np

from adahi_ros.safety.limits import Limits


def fastest(start: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the largest speed (A,) of a cubic that ends with its mean velocity.

    Its velocity is start + 4 (mean - start) t - 3 (mean - start) t^2 with t from 0 to 1, which is furthest
    at t = 2/3: a third of the change beyond the mean (Hermite).

    Args:
        start: (A,) velocity at its begin.
        mean: (A,) displacement over its duration, also the velocity at its end.
    """
    return np.maximum(np.abs(start), np.abs(mean + (mean - start) / 3.0))


def stopping_point(
    start: np.ndarray, speeds: np.ndarray, wanted: np.ndarray, limits: Limits, period_s: float
) -> np.ndarray:
    """Return where an arm stops (A,) that goes towards a wanted position for one more period, then brakes.

    Args:
        start: (A,) position.
        speeds: (A,) there, per s.
        wanted: (A,) position.
        limits: of the arm.
        period_s: of the control.
    """
    change = np.minimum(limits.acceleration * period_s, 2.0 * limits.velocity)
    soon = np.clip((wanted - start) / period_s, speeds - change, speeds + change)
    soon = np.clip(soon, -limits.velocity, limits.velocity)
    return start + soon * period_s + soon * np.abs(soon) / (2.0 * limits.acceleration)

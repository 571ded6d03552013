# SPDX-License-Identifier: Apache-2.0
"""How fast a controller's curve is, and where an arm can stop."""

from __future__ import annotations

import numpy as np

from adahi_ros.safety.limits import Limits

POINTS = 5


def fastest(start: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the largest speed (A,) of a cubic that ends with its mean velocity.

    Its velocity is start + 4 (mean - start) t - 3 (mean - start) t^2 with t from 0 to 1, which is furthest
    at t = 2/3: a third of the change beyond the mean (Hermite).

    Args:
        start: (A,) velocity at its begin.
        mean: (A,) displacement over its duration, also the velocity at its end.
    """
    return np.maximum(np.abs(start), np.abs(mean + (mean - start) / 3.0))


def stopping_path(start: np.ndarray, speeds: np.ndarray, limits: Limits) -> np.ndarray:
    """Return where an arm passes (P, A) that brakes: at first, on the way, and at rest.

    Args:
        start: (A,) position.
        speeds: (A,) there, per s.
        limits: of the arm.
    """
    brakes_s = np.abs(speeds) / limits.acceleration
    passed_s = np.minimum(np.linspace(0.0, brakes_s.max(), POINTS)[:, None], brakes_s)
    left = 1.0 - 0.5 * np.divide(passed_s, brakes_s, out=np.zeros_like(passed_s), where=brakes_s > 0.0)
    return start + speeds * passed_s * left

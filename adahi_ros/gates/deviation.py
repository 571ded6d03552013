# SPDX-License-Identifier: Apache-2.0
"""Action deviation: how far a draft lies from the average of the actions before it.

The paper (section III-A1) gives the idea; its equations (4) and (5) did not survive in print:

    m_t = a a_t + (1 - a) m_(t-1)              smoothing factor a
    d_t = | a_t - m_(t-1) |_s                  norm in units of s

Scaled by each dimension's standard deviation (`std`) the deviation ranks rejections better than
divided by the length of the average (`average`), on the same data; docs/calibration.md has the
comparison. The average runs over what was executed: that is what the robot did. For one that is held or
slowed down by its limits it is what was commanded in place of what the policy wanted: while it is braked,
what brakes it, such as the position to stay at; and while it rests and nothing is commanded, nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

SHORTEST_AVERAGE = 0.05  # in units of the action scale: standing still must not divide by zero


def _by_std(step: np.ndarray, average: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("bd,bd->b", step, step) / step.shape[1])


def _by_average(step: np.ndarray, average: np.ndarray) -> np.ndarray:
    length = np.sqrt(np.einsum("bd,bd->b", average, average))
    return np.sqrt(np.einsum("bd,bd->b", step, step)) / np.maximum(length, SHORTEST_AVERAGE)


NORMALIZATIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "std": _by_std,
    "average": _by_average,
}


class DeviationTracker:
    """The moving average of B robots' executed actions, and drafts' deviation from it.

    Args:
        action_scale: (A,), standard deviation of the demonstrated actions.
        smoothing: weight of the newest action in the average, in (0, 1].
        normalization: a key of `NORMALIZATIONS`.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """

    def __init__(self, action_scale: np.ndarray, smoothing: float, normalization: str) -> None:
        if not 0.0 < smoothing <= 1.0:
            raise ValueError(f"smoothing: {smoothing}, must be above 0 and at most 1")
        if normalization not in NORMALIZATIONS:
            raise ValueError(
                f"normalization: {normalization!r}, must be one of {', '.join(sorted(NORMALIZATIONS))}"
            )
        self._scale = action_scale
        self._smoothing = smoothing
        self._norm = NORMALIZATIONS[normalization]
        self._average: np.ndarray | None = None

    def reset(self) -> None:
        """Forget the past."""
        self._average = None

    def deviation(self, actions: np.ndarray) -> np.ndarray:
        """Return the deviation (B,) of actions (B, A); infinite where there is no past."""
        if self._average is None:
            return np.full(len(actions), np.inf)
        scaled = actions / self._scale
        return self._norm(scaled - self._average, self._average)

    def update(self, actions: np.ndarray) -> None:
        """Take executed actions (B, A) into the average."""
        scaled = actions / self._scale
        if self._average is None:
            self._average = scaled
        else:
            self._average = self._average + self._smoothing * (scaled - self._average)

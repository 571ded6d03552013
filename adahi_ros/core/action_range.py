# SPDX-License-Identifier: Apache-2.0
"""Which actions a policy may mean."""

from __future__ import annotations

import numpy as np


class ActionRange:
    """Tells actions from faults.

    Args:
        low, high: (A,) in action units; what lies beyond is no action.
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
        inside: np.ndarray = (actions >= self.low) & (actions <= self.high)  # false for what is not a number
        return inside

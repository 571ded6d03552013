# SPDX-License-Identifier: Apache-2.0
"""Whether an arm follows its commands: following error, as motion controllers name it."""

from __future__ import annotations

from collections import deque

import numpy as np

WINDOW_S = 0.5  # an arm has to be where it was commanded within this time
COMMANDS_KEPT = 1024


class Following:
    """Compares where an arm is measured with all that was commanded in the last `WINDOW_S`.

    An arm that lags is somewhere between the commands of the window, whatever its speed. An arm in a
    protective stop is not. It knows no clock.

    Args:
        limit: (A,) largest distance from what was commanded, infinite where none is checked.
    """

    def __init__(self, limit: np.ndarray) -> None:
        self._limit = limit
        self._checks = bool(np.isfinite(limit).any())
        self._commands: deque[tuple[float, np.ndarray]] = deque(maxlen=COMMANDS_KEPT)
        self._since_s = float("inf")

    def reset(self) -> None:
        """Begin a new window: the robot was held, or begins from where it is measured."""
        self._commands.clear()
        self._since_s = float("inf")

    def commanded(self, positions: np.ndarray, now_s: float) -> None:
        """Take a command (A,)."""
        if not self._commands:
            self._since_s = now_s
        self._commands.append((now_s, positions))

    def error(self, measured: np.ndarray | None, now_s: float) -> int | None:
        """Return the first entry that does not follow; None where all do, or the window is not full yet.

        Args:
            measured: (A,) positions, NaN where unknown; None where none is known.
            now_s: the time.
        """
        while len(self._commands) > 1 and self._commands[1][0] <= now_s - WINDOW_S:
            self._commands.popleft()  # the one before the window is what the arm had at its begin
        if not self._checks or measured is None or not self._commands or now_s - self._since_s < WINDOW_S:
            return None
        window = np.array([positions for _, positions in self._commands])
        with np.errstate(invalid="ignore"):
            off = np.maximum(window.min(axis=0) - measured, measured - window.max(axis=0))
            beyond = np.flatnonzero(off > self._limit)
        return int(beyond[0]) if len(beyond) else None

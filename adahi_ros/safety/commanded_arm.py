# SPDX-License-Identifier: Apache-2.0
"""What a driver sends to an arm: holds, and bounded steps to commanded positions. No clock, no ROS."""

from __future__ import annotations

import math

import numpy as np


class CommandedArm:
    """An arm that moves only by commands.

    It is held where it is measured at three times: once before the first command, since its motors may have
    the goal of an earlier program; once when commands stop; and at the end.

    Args:
        silence_s: commands have stopped after so long without one.
        max_step: distance from its measured position to which a joint is sent at most, in the arm's units.
    """

    def __init__(self, silence_s: float, max_step: float) -> None:
        self._silence_s, self._max_step = silence_s, max_step
        self._measured = np.empty(0)
        self._measured_s = -math.inf
        self._commanded_s = -math.inf
        self._held = False

    def measured(self, positions: np.ndarray, now_s: float) -> np.ndarray | None:
        """Note where the joints are, (J,); return the positions to send now, (J,), None for nothing.

        Raises:
            ValueError: one is not finite.
        """
        if not np.isfinite(positions).all():
            raise ValueError(f"measured: {positions.tolist()}, must be finite")
        self._measured, self._measured_s = positions, now_s
        return None if now_s - self._commanded_s <= self._silence_s else self.hold()

    def command(self, positions: np.ndarray, publishers: int, now_s: float) -> np.ndarray:
        """Return the positions (J,) to send for a command.

        Args:
            positions: (J,), finite.
            publishers: of commands, at this time.
            now_s: the time.

        Raises:
            ValueError: nothing may be sent for this command; says why.
        """
        if publishers > 1:
            raise ValueError(f"{publishers} programs command the arm, must be one: end the others")
        if now_s - self._measured_s > self._silence_s:
            raise ValueError("the arm was not measured, so any step could be too large")
        self._commanded_s, self._held = now_s, False
        step = np.clip(positions - self._measured, -self._max_step, self._max_step)
        sent: np.ndarray = self._measured + step
        return sent

    def hold(self) -> np.ndarray | None:
        """Return the positions that hold the arm, (J,); None if it is held already, or was never measured."""
        if self._held or not len(self._measured):
            return None
        self._held = True
        return self._measured

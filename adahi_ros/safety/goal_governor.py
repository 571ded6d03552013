# SPDX-License-Identifier: Apache-2.0
"""Limits a position that a driver moves to by itself."""

from __future__ import annotations

import math

from adahi_ros.safety.governors import BOUNDS, Governor, clip
from adahi_ros.safety.limits import Limits


class GoalGovernor(Governor):
    """A position that a driver moves to by itself, at its own speed: only the position limit applies.

    It holds by repeating the last command: to hold the robot, the caller cancels the goal.
    """

    def __init__(self, limits: Limits, place: int, period_s: float) -> None:
        self._low, self._high = float(limits.position_low[place]), float(limits.position_high[place])
        self.reset()

    def reset(self) -> None:
        self._position = math.nan

    def begin(self, measured: float) -> None:
        if not math.isnan(measured):
            self._position = measured

    def admit(self, wanted: float, measured: float, interval_s: float, stages: set[int]) -> float:
        self._position = clip(wanted, self._low, self._high)
        if self._position != wanted:
            stages.add(BOUNDS)
        return self._position

    def can_hold(self, measured: float) -> bool:
        return not (math.isnan(self._position) and math.isnan(measured))

    def hold(self, measured: float, interval_s: float) -> float:
        return measured if math.isnan(self._position) else self._position

# SPDX-License-Identifier: Apache-2.0
"""Limits commands that do not depend on earlier ones."""

from __future__ import annotations

from adahi_ros.safety.governors import ACCELERATION, EFFORT, Governor, clip
from adahi_ros.safety.limits import Limits


class AccelerationGovernor(Governor):
    """A command with a largest magnitude, independent of earlier ones. It holds with 0."""

    _stage = ACCELERATION

    def __init__(self, limits: Limits, place: int, period_s: float) -> None:
        self._largest = float(limits.acceleration[place])

    def admit(self, wanted: float, measured: float, interval_s: float, stages: set[int]) -> float:
        action = clip(wanted, -self._largest, self._largest)
        if action != wanted:
            stages.add(self._stage)
        return action

    def hold(self, measured: float, interval_s: float) -> float:
        return 0.0


class EffortGovernor(AccelerationGovernor):
    """The same for an effort."""

    _stage = EFFORT

    def __init__(self, limits: Limits, place: int, period_s: float) -> None:
        self._largest = float(limits.effort[place])

# SPDX-License-Identifier: Apache-2.0
"""What a command without a past may be."""

from __future__ import annotations

from adahi_ros.safety.governors import ACCELERATION, EFFORT, clip
from adahi_ros.safety.limits import Limits


class MagnitudeGovernor:
    """A command that has a largest magnitude, and no past: acceleration and effort. It holds with 0.

    Args:
        largest: magnitude.
        stage: that this limit is.
    """

    at_rest = True

    def __init__(self, largest: float, stage: int) -> None:
        self._largest = largest
        self._stage = stage

    def reset(self) -> None:
        pass

    def slow(self, share: float, reached: bool) -> None:
        pass

    def strays(self, measured: float, interval_s: float) -> bool:
        return False

    def begin(self, measured: float) -> None:
        pass

    def admit(self, wanted: float, measured: float, interval_s: float, stages: set[int]) -> float:
        action = clip(wanted, -self._largest, self._largest)
        if action != wanted:
            stages.add(self._stage)
        return action

    def can_hold(self, measured: float) -> bool:
        return True

    def hold(self, measured: float, interval_s: float) -> float:
        return 0.0


def acceleration_governor(limits: Limits, place: int, period_s: float) -> MagnitudeGovernor:
    """Return that of one entry of the limits."""
    return MagnitudeGovernor(float(limits.acceleration[place]), ACCELERATION)


def effort_governor(limits: Limits, place: int, period_s: float) -> MagnitudeGovernor:
    """Return that of one entry of the limits."""
    return MagnitudeGovernor(float(limits.effort[place]), EFFORT)

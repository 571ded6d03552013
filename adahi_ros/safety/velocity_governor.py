# SPDX-License-Identifier: Apache-2.0
"""What a commanded velocity may be."""

from __future__ import annotations

import math

from adahi_ros.safety.governors import (
    ACCELERATION,
    APPROACH,
    VELOCITY,
    Bound,
    brakable,
    clip,
    over,
    rounding_of,
    through,
)
from adahi_ros.safety.limits import Limits


class VelocityGovernor:
    """A commanded velocity: within its limit, and so is its change from one to the next.

    Where the position is measured, the velocity is such that a period later there is still room to brake
    before the position limit. That gives way to the limit of acceleration where both cannot be.

    Args:
        period_s: of the control.
        low: smallest position.
        high: largest position.
        velocity: largest speed, per s.
        acceleration: largest change of velocity, per s^2.
    """

    def __init__(
        self, period_s: float, low: float, high: float, velocity: float, acceleration: float
    ) -> None:
        self._low, self._high = low, high
        self._fastest, self._acceleration = velocity, acceleration
        self._period_s = period_s
        self._period_change = over(acceleration, period_s * period_s)
        self.reset()

    def reset(self) -> None:
        self._velocity = 0.0

    def slow(self, share: float, reached: bool) -> None:
        if share == 0.0:  # a controller may have stopped it meanwhile; before that it goes on
            self._velocity = 0.0

    def strays(self, measured: float, interval_s: float) -> bool:
        return False

    def begin(self, measured: float) -> None:
        self._velocity = 0.0

    @property
    def at_rest(self) -> bool:
        return self._velocity == 0.0

    def admit(self, wanted: float, measured: float, interval_s: float, stages: set[int]) -> float:
        target = clip(wanted, -self._fastest, self._fastest)
        if target != wanted:
            stages.add(VELOCITY)
        known = not math.isnan(measured)
        back = self._approach(measured - self._low if known else math.inf)
        forth = self._approach(self._high - measured if known else math.inf)
        return self._changed(target, ((APPROACH, -back, forth),), interval_s, stages)

    def can_hold(self, measured: float) -> bool:
        return True

    def hold(self, measured: float, interval_s: float) -> float:
        return self._changed(0.0, (), interval_s, set())

    def _approach(self, room: float) -> float:
        """Return the largest speed towards a position limit."""
        return brakable(room, self._period_change) / self._period_s

    def _changed(
        self, target: float, bounds: tuple[Bound, ...], interval_s: float, stages: set[int]
    ) -> float:
        """Come as near to a target as its bounds allow, and above all that of acceleration."""
        before = self._velocity
        change = over(self._acceleration, interval_s)
        braking = (ACCELERATION, before - change, before + change)
        rounding = rounding_of(before, target)
        velocity = through(target, (*bounds, braking), rounding, stages)
        self._velocity = target if abs(target - velocity) <= rounding else velocity
        return self._velocity


def velocity_governor(limits: Limits, place: int, period_s: float) -> VelocityGovernor:
    """Return that of one entry of the limits."""
    motion = limits.position_low, limits.position_high, limits.velocity, limits.acceleration
    return VelocityGovernor(period_s, *(float(column[place]) for column in motion))

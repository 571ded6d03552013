# SPDX-License-Identifier: Apache-2.0
"""Limits a commanded velocity."""

from __future__ import annotations

import math

from adahi_ros.safety.governors import (
    ACCELERATION,
    APPROACH,
    VELOCITY,
    Bound,
    Governor,
    brakable,
    clip,
    over,
    rounding_of,
    through,
)
from adahi_ros.safety.limits import Limits


class VelocityGovernor(Governor):
    """A commanded velocity: it and its change are within limits.

    Where the position is measured, there is still room one period later to brake before the
    position limit. The acceleration limit takes precedence where both are impossible.
    """

    def __init__(self, limits: Limits, place: int, period_s: float) -> None:
        self._low, self._high = float(limits.position_low[place]), float(limits.position_high[place])
        self._fastest = float(limits.velocity[place])
        self._acceleration = float(limits.acceleration[place])
        self._period_s = period_s
        self._period_change = over(self._acceleration, period_s * period_s)
        self.reset()

    def reset(self) -> None:
        self._velocity = 0.0

    def slow(self, share: float, reached: bool, unknown: bool) -> None:
        if unknown:  # earlier it continues
            self._velocity = 0.0

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

    def hold(self, measured: float, interval_s: float) -> float:
        return self._changed(0.0, (), interval_s, set())

    def _approach(self, room: float) -> float:
        """Return the largest speed towards a position limit."""
        return brakable(room, self._period_change) / self._period_s

    def _changed(
        self, target: float, bounds: tuple[Bound, ...], interval_s: float, stages: set[int]
    ) -> float:
        """Approach a target as far as its bounds allow, with priority for that of acceleration."""
        before = self._velocity
        change = over(self._acceleration, interval_s)
        braking = (ACCELERATION, before - change, before + change)
        rounding = rounding_of(before, target)
        velocity = through(target, (*bounds, braking), rounding, stages)
        self._velocity = target if abs(target - velocity) <= rounding else velocity
        return self._velocity

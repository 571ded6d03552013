# SPDX-License-Identifier: Apache-2.0
"""What a commanded position may be."""

from __future__ import annotations

import math

from adahi_ros.safety.governors import (
    ACCELERATION,
    BOUNDS,
    ROOM,
    STEP,
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


class PositionGovernor(Governor):
    """A commanded position: within limits, and so are velocity and acceleration from one to the next.

    Starts from the measured position at rest; where there is none, from the first that is wanted. A start
    outside of the position limits is left inwards only.
    """

    def __init__(self, limits: Limits, place: int, period_s: float) -> None:
        self._low, self._high = float(limits.position_low[place]), float(limits.position_high[place])
        self._fastest = float(limits.velocity[place])
        self._acceleration = float(limits.acceleration[place])
        self._max_step = float(limits.max_step[place])
        self.reset()

    def reset(self) -> None:
        self._position: float | None = None
        self._velocity = 0.0  # stays 0 where one may stop at once

    def slow(self, share: float, reached: bool) -> None:
        self._velocity *= 0.0 if reached else share

    def strays(self, measured: float, interval_s: float) -> bool:
        if self._position is None or math.isnan(measured):
            return False
        coasted = self._velocity * interval_s
        change = over(self._acceleration, interval_s * interval_s)
        off = self._position - measured
        return max(abs(off), abs(off + clip(0.0, coasted - change, coasted + change))) > self._max_step

    def begin(self, measured: float) -> None:
        if not math.isnan(measured):
            self._position = measured
        self._velocity = 0.0

    @property
    def at_rest(self) -> bool:
        return self._velocity == 0.0

    def admit(self, wanted: float, measured: float, interval_s: float, stages: set[int]) -> float:
        start = clip(wanted, self._low, self._high)
        if start != wanted:
            stages.add(BOUNDS)
        if self._position is None:
            self._position = start if math.isnan(measured) else measured
        nearest, furthest = self._within_step(self._position, measured)
        target = clip(start, nearest, furthest)
        if target != start:
            stages.add(STEP)
        change = over(self._acceleration, interval_s * interval_s)
        back = brakable(self._position - nearest, change)
        forth = brakable(furthest - self._position, change)
        fast = over(self._fastest, interval_s)
        bounds = ((STEP, -back, forth), (VELOCITY, -fast, fast))
        return self._moved(target, bounds, change, interval_s, stages)

    def can_hold(self, measured: float) -> bool:
        return self._position is not None or not math.isnan(measured)

    def hold(self, measured: float, interval_s: float) -> float:
        if self._position is None:
            self._position = measured
        change = over(self._acceleration, interval_s * interval_s)
        return self._moved(self._position, (), change, interval_s, set())

    def _within_step(self, before: float, measured: float) -> tuple[float, float]:
        """Return the positions near enough to the measured one; never all further outside than before."""
        if math.isnan(measured):
            return -math.inf, math.inf
        return (
            min(measured - self._max_step, max(self._high, before)),
            max(measured + self._max_step, min(self._low, before)),
        )

    def _moved(
        self, target: float, bounds: tuple[Bound, ...], change: float, interval_s: float, stages: set[int]
    ) -> float:
        """Go towards a target as far as its bounds allow, and above all those that hold when braking, too.

        Args:
            target: position.
            bounds: of the displacement.
            change: how far it may be from what would be coasted, a dt^2.
            interval_s: since the last command.
            stages: to add to.
        """
        before, low, high = self._position, self._low, self._high
        assert before is not None
        coasted = self._velocity * interval_s
        braking = (
            (ACCELERATION, coasted - change, coasted + change),
            (ROOM, -brakable(before - low, change), brakable(high - before, change)),
        )
        # The velocity was made of a position that may have been further from 0 than both are now.
        rounding = max(rounding_of(before, target), rounding_of(abs(before) + abs(coasted), 0.0))
        moved = through(target - before, bounds + braking, rounding, stages)
        if interval_s > 0.0 and self._acceleration != math.inf:
            self._velocity = clip(moved / interval_s, -self._fastest, self._fastest)
        self._position = clip(
            target if abs(target - before - moved) <= rounding else before + moved,
            low if low < before else before,
            high if high > before else before,
        )
        return self._position

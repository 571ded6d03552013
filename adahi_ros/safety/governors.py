# SPDX-License-Identifier: Apache-2.0
"""Limits an entry of an action, given the previous commands: one governor per kind of command.

A governor stores the commanded state, and limits are relative to it: measurements lag behind, and are
noisy. The difficult part is the speed near a position limit. The time of the next command is unknown, so a
speed v is allowed where v^2 / 2a is left to the limit. From there v - a dt is allowed again, for any dt: a
command moves with the speed at the interval's end, so it never needs more than a smooth stop does.
Hence no limit ever overrides another.

Every entry has its own governor, which uses plain floats: for a robot's few entries, arrays would take
several times as long.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from adahi_ros.contract.contract import GOALS
from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.limits import Limits

ROUNDING = 4.0  # units in the last place of rounding at a limit
FAR = 1e18  # room where there is no limit; finite, so that 0 times it is 0
TINY = 1e-300

# The stages that may change a wanted entry, in order, and the intervention of each. Entries are limited one
# after the other; the stages give the interventions of all entries in one order.
STAGES = (
    Intervention.POSITION,  # the position is beyond its limit
    Intervention.STEP,
    Intervention.VELOCITY,
    Intervention.POSITION,  # the velocity is too fast to brake in time
    Intervention.ACCELERATION,
    Intervention.POSITION,  # the displacement is too large to brake in time
    Intervention.EFFORT,
)
BOUNDS, STEP, VELOCITY, APPROACH, ACCELERATION, ROOM, EFFORT = range(len(STAGES))

Bound = tuple[int, float, float]  # stage, low, high


def interventions_of(stages: set[int]) -> tuple[Intervention, ...]:
    """Return the interventions of the stages, in their order, each once."""
    return tuple(dict.fromkeys(STAGES[stage] for stage in sorted(stages)))


class Governor(ABC):
    """Limits the commands of one entry. Intervals are in s, from 0 to a control period.

    By default it has no state and commands no position: it is always at rest.

    Attributes:
        turns_s: longest time in which the velocity may change for the next command.

    Args:
        limits: of the robot.
        place: of the entry among them.
        period_s: of the control.
    """

    turns_s = math.inf

    @abstractmethod
    def __init__(self, limits: Limits, place: int, period_s: float) -> None:
        """Store the limits of the entry."""

    def reset(self) -> None:  # noqa: B027
        """Forget the previous commands."""

    def slow(self, share: float, reached: bool, unknown: bool) -> None:  # noqa: B027
        """Note that the next command is late.

        Args:
            share: share of the commanded velocity that remains for a robot that reaches a position and
                stands.
            reached: a position is reached, and nothing may set the robot in motion again.
            unknown: a controller may have stopped a commanded velocity meanwhile.
        """

    def strays(self, measured: float, interval_s: float) -> bool:
        """Return whether the last command, or the next while braking, is too far from a measured position."""
        return False

    def begin(self, measured: float) -> None:  # noqa: B027
        """Stand still at a measured position; where that is NaN, at the last command."""

    @abstractmethod
    def admit(self, wanted: float, measured: float, interval_s: float, stages: set[int]) -> float:
        """Return the command for a finite number, and add the stages that changed it.

        Args:
            wanted: finite.
            measured: position, NaN where unknown.
            interval_s: since the last command.
            stages: indices into `STAGES`, of all entries.
        """

    def can_hold(self, measured: float) -> bool:
        """Return whether a braking command is known."""
        return True

    @abstractmethod
    def hold(self, measured: float, interval_s: float) -> float:
        """Return the braking command; only where `can_hold`."""

    @property
    def at_rest(self) -> bool:
        """Whether the last command stops the robot, once it is reached."""
        return True


def brakable(room: float, change: float) -> float:
    """Return the largest displacement in an interval that leaves room to brake from its speed.

    The d that solves d + (d / dt)^2 / 2a = room; all of the room where a is unlimited.

    room: to the limit; 0 where it is below 0.
    change: change of the displacement from one interval to the next while braking, a dt^2.
    """
    room = clip(room, 0.0, FAR)
    steepness = 2.0 * room / (change if change > TINY else TINY)
    return 2.0 * room / (1.0 + math.sqrt(1.0 + steepness))


def over(limit: float, interval: float) -> float:
    """Return a limit times an interval, or its square; unlimited stays unlimited at interval 0."""
    return math.inf if limit == math.inf else limit * interval


def clip(value: float, low: float, high: float) -> float:
    """Clip; values within keep every bit, including the sign of a zero; if low > high, return high."""
    if value < low:
        value = low
    return high if value > high else value


def rounding_of(one: float, other: float) -> float:
    """Return the possible rounding error of sums of two terms."""
    return ROUNDING * math.ulp(max(abs(one), abs(other)))


def through(value: float, bounds: tuple[Bound, ...], rounding: float, stages: set[int]) -> float:
    """Clip by one bound after the other; add the stages with changes larger than rounding."""
    for stage, low, high in bounds:
        if not low <= value <= high:
            clipped = clip(value, low, high)
            if abs(clipped - value) > rounding:
                stages.add(stage)
            value = clipped
    return value


class PositionGovernor(Governor):
    """A commanded position: it, its velocity and its acceleration are within limits.

    Starts at rest at the measured position, or without one at the first wanted position. A start
    outside of the position limits is left only inwards.
    """

    def __init__(self, limits: Limits, place: int, period_s: float) -> None:
        self._low, self._high = float(limits.position_low[place]), float(limits.position_high[place])
        self._fastest = float(limits.velocity[place])
        self._acceleration = float(limits.acceleration[place])
        self._max_step = float(limits.max_step[place])
        self.reset()

    def reset(self) -> None:
        self._position: float | None = None
        self._velocity = 0.0  # stays 0 without an acceleration limit

    def slow(self, share: float, reached: bool, unknown: bool) -> None:
        self._velocity *= 0.0 if reached else share

    def strays(self, measured: float, interval_s: float) -> bool:
        if self._position is None or math.isnan(measured):
            return False
        coasted, change = self._velocity * interval_s, self._change(interval_s)
        off = self._position - measured
        return max(abs(off), abs(off + clip(0.0, coasted - change, coasted + change))) > self._max_step

    def begin(self, measured: float) -> None:
        if not math.isnan(measured):
            self._position = measured
        self._velocity = 0.0

    @property
    def at_rest(self) -> bool:
        return self._velocity == 0.0

    def _change(self, interval_s: float) -> float:
        """Return the largest distance from coasting, a dt^2."""
        return over(self._acceleration, interval_s * min(interval_s, self.turns_s))

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
        change = self._change(interval_s)
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
        return self._moved(self._position, (), self._change(interval_s), interval_s, set())

    def _within_step(self, before: float, measured: float) -> tuple[float, float]:
        """Return the positions near enough to the measured one; never all further outside than the last."""
        if math.isnan(measured):
            return -math.inf, math.inf
        return (
            min(measured - self._max_step, max(self._high, before)),
            max(measured + self._max_step, min(self._low, before)),
        )

    def _moved(
        self, target: float, bounds: tuple[Bound, ...], change: float, interval_s: float, stages: set[int]
    ) -> float:
        """Approach a target as far as its bounds allow, with priority for bounds while braking.

        Args:
            target: position.
            bounds: of the displacement.
            change: largest distance from coasting.
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
        # The velocity was computed from a position that may have been further from 0 than both are now.
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


GOVERNORS: dict[str, str] = {
    "positions": "adahi_ros.safety.governors:PositionGovernor",
    "velocities": "adahi_ros.safety.velocity_governor:VelocityGovernor",
    "accelerations": "adahi_ros.safety.magnitude_governor:AccelerationGovernor",
    "effort": "adahi_ros.safety.magnitude_governor:EffortGovernor",
    GOALS: "adahi_ros.safety.goal_governor:GoalGovernor",
}
"""The governor of one entry by the command's quantity, as "module:class"."""

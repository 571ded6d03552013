# SPDX-License-Identifier: Apache-2.0
"""What an entry of an action may be, given what went out before: one governor for each kind of command.

A governor remembers the commanded state, and limits are relative to it: what is measured lags behind,
and is noisy. The one question that takes thought is how fast a joint may approach a position limit.
Nobody knows when the next command will be due, so a speed v is allowed where v^2 / 2a is left to the
limit. From there v - a dt is a speed that is allowed again, whatever dt turns out to be: what is
commanded moves with the speed at the interval's end, so it never needs more than a smooth stop does.
Hence no limit ever has to give way to another.

Every entry has its own governor, and that reckons with plain floats: for the few entries that a robot
has, arrays would take several times as long.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from adahi_ros.contract.contract import GOALS
from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.limits import Limits

ROUNDING = 4.0  # units in the last place by which arithmetic may miss a limit that is met
FAR = 1e18  # room where there is no limit; finite, so that 0 times it is 0
TINY = 1e-300

# What may change a wanted entry, in the order in which it does, and what it is told as. Entries are limited
# one after the other; it takes the stages to tell what happened to all of them in one order.
STAGES = (
    Intervention.POSITION,  # it is beyond
    Intervention.STEP,
    Intervention.VELOCITY,
    Intervention.POSITION,  # the velocity is too fast to brake in time
    Intervention.ACCELERATION,
    Intervention.POSITION,  # the displacement is
    Intervention.EFFORT,
)
BOUNDS, STEP, VELOCITY, APPROACH, ACCELERATION, ROOM, EFFORT = range(len(STAGES))

Bound = tuple[int, float, float]  # stage, low, high


def interventions_of(stages: set[int]) -> tuple[Intervention, ...]:
    """Return what the stages are told as, in their order, each once."""
    return tuple(dict.fromkeys(STAGES[stage] for stage in sorted(stages)))


class Governor(ABC):
    """Limits the commands of one entry. Intervals are in s, from 0 to a control period.

    By default it has no past and commands no position: it is always at rest.

    Args:
        limits: of the robot.
        place: of the entry among them.
        period_s: of the control.
    """

    @abstractmethod
    def __init__(self, limits: Limits, place: int, period_s: float) -> None:
        """Take the limits of the entry."""

    def reset(self) -> None:  # noqa: B027
        """Forget what went out."""

    def slow(self, share: float, reached: bool) -> None:  # noqa: B027
        """Take note that the next command comes late.

        Args:
            share: of the commanded velocity that is left to a robot that reaches a position and stands; 0
                after so long that nothing is known of a commanded velocity either.
            reached: a position is reached, and nothing may set the robot in motion again.
        """

    def strays(self, measured: float, interval_s: float) -> bool:
        """Return whether what went out, or would next if it braked, is too far from a measured position."""
        return False

    def begin(self, measured: float) -> None:  # noqa: B027
        """Stand still at a measured position; where that is NaN, at the one that went out."""

    @abstractmethod
    def admit(self, wanted: float, measured: float, interval_s: float, stages: set[int]) -> float:
        """Return what may go out of a finite number, and add the stages that changed it.

        Args:
            wanted: finite.
            measured: position, NaN where unknown.
            interval_s: since the last command.
            stages: indices into `STAGES`, of all entries.
        """

    def can_hold(self, measured: float) -> bool:
        """Return whether it is known what brakes."""
        return True

    @abstractmethod
    def hold(self, measured: float, interval_s: float) -> float:
        """Return what brakes; only where `can_hold`."""

    @property
    def at_rest(self) -> bool:
        """Whether what went out last stops the robot, once it has got there."""
        return True


def brakable(room: float, change: float) -> float:
    """Return the largest displacement in an interval that leaves room to brake from its speed.

    The d that solves d + (d / dt)^2 / 2a = room; all of the room where a is unlimited.

    Args:
        room: to the limit; none where it is below 0.
        change: by which braking changes the displacement from one interval to the next, a dt^2.
    """
    room = clip(room, 0.0, FAR)
    steepness = 2.0 * room / (change if change > TINY else TINY)
    return 2.0 * room / (1.0 + math.sqrt(1.0 + steepness))


def over(limit: float, interval: float) -> float:
    """Return a limit times an interval, or its square; what is unlimited stays so in no time."""
    return math.inf if limit == math.inf else limit * interval


def clip(value: float, low: float, high: float) -> float:
    """Clip; what is within keeps every bit, the sign of a zero too, and where low > high, high it is."""
    if value < low:
        value = low
    return high if value > high else value


def rounding_of(one: float, other: float) -> float:
    """Return by how much sums of two terms may be off."""
    return ROUNDING * math.ulp(max(abs(one), abs(other)))


def through(value: float, bounds: tuple[Bound, ...], rounding: float, stages: set[int]) -> float:
    """Clip by one bound after the other; add the stages of those that changed more than rounding."""
    for stage, low, high in bounds:
        if not low <= value <= high:
            clipped = clip(value, low, high)
            if abs(clipped - value) > rounding:
                stages.add(stage)
            value = clipped
    return value


GOVERNORS: dict[str, str] = {
    "positions": "adahi_ros.safety.position_governor:PositionGovernor",
    "velocities": "adahi_ros.safety.velocity_governor:VelocityGovernor",
    "accelerations": "adahi_ros.safety.magnitude_governor:AccelerationGovernor",
    "effort": "adahi_ros.safety.magnitude_governor:EffortGovernor",
    GOALS: "adahi_ros.safety.goal_governor:GoalGovernor",
}
"""By what a command is: the governor of one entry, as "module:class"."""

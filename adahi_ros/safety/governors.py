"""What an action may be, given what went out before: one governor for each kind of command.

A governor remembers the commanded state, and limits are relative to it: what is measured lags behind,
and is noisy. The one question that takes thought is how fast a joint may approach a position limit.
Nobody knows when the next command will be due, so a speed v is allowed where v^2 / 2a is left to the
limit. From there v - a dt is a speed that is allowed again, whatever dt turns out to be: what is
commanded moves with the speed at the interval's end, so it never needs more than a smooth stop does.
Hence no limit ever has to give way to another.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.limits import Limits

PAUSE_PERIODS = 3.0  # longer intervals count as this: what comes after a pause must not be a leap
ROUNDING = 4.0  # units in the last place by which arithmetic may miss a limit that is met
FAR = 1e18  # room where there is no limit; finite, so that 0 times it is 0
TINY = 1e-300

Governed = tuple[np.ndarray, tuple[Intervention, ...]]
Stage = tuple[Intervention, np.ndarray, np.ndarray]


class Governor(Protocol):
    """Limits the commands of one field. Intervals are in s, from 0 to `PAUSE_PERIODS` periods."""

    def reset(self) -> None:
        """Forget what went out."""

    def admit(self, wanted: np.ndarray, measured: np.ndarray, interval_s: float) -> Governed:
        """Return what may go out of (A,) finite numbers; measured positions (A,) are NaN where unknown."""

    def hold(self, measured: np.ndarray, interval_s: float) -> np.ndarray | None:
        """Return what brakes, (A,); None where nothing can be said."""

    @property
    def at_rest(self) -> bool:
        """Whether what went out last stops the robot, once it has got there."""


class PositionGovernor:
    """Commanded positions: within limits, and so are velocity and acceleration from one to the next.

    Starts from the measured position at rest; where there is none, from the first that is wanted. A start
    outside of the position limits is left inwards only.
    """

    def __init__(self, limits: Limits, period_s: float) -> None:
        self._limits = limits
        self._pause_s = PAUSE_PERIODS * period_s
        self.reset()

    def reset(self) -> None:
        self._position: np.ndarray | None = None
        self._velocity = np.zeros(len(self._limits.names))  # stays 0 where one may stop at once

    @property
    def at_rest(self) -> bool:
        return not self._velocity.any()

    def admit(self, wanted: np.ndarray, measured: np.ndarray, interval_s: float) -> Governed:
        limits = self._limits
        start = _clipped(wanted, limits.position_low, limits.position_high)
        if self._position is None:
            self._position = np.where(np.isnan(measured), start, measured)
        position = self._position
        nearest, furthest = self._within_step(measured)
        target = _clipped(start, nearest, furthest)
        fast = _over(limits.velocity, interval_s)
        stages = [
            (
                Intervention.STEP,
                -self._brakable(position - nearest, interval_s),
                self._brakable(furthest - position, interval_s),
            ),
            (Intervention.VELOCITY, -fast, fast),
            *self._always(interval_s),
        ]
        reasons = [Intervention.POSITION] if (start != wanted).any() else []
        reasons += [Intervention.STEP] if (target != start).any() else []
        action, more = self._moved(target, stages, interval_s)
        return action, tuple(dict.fromkeys([*reasons, *more]))

    def hold(self, measured: np.ndarray, interval_s: float) -> np.ndarray | None:
        if self._position is None:
            if np.isnan(measured).any():
                return None
            self._position = measured
        return self._moved(self._position, self._always(interval_s), interval_s)[0]

    def _within_step(self, measured: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions near enough to the measured one, (A,) each; never all beyond a limit."""
        limits, known = self._limits, ~np.isnan(measured)
        nearest = np.where(known, measured - limits.max_step, -np.inf)
        furthest = np.where(known, measured + limits.max_step, np.inf)
        return np.minimum(nearest, limits.position_high), np.maximum(furthest, limits.position_low)

    def _always(self, interval_s: float) -> list[Stage]:
        """Return the limits of displacement that hold when braking, too."""
        assert self._position is not None
        limits = self._limits
        if interval_s >= self._pause_s:  # the last position has been reached, and held
            self._velocity = np.zeros_like(self._velocity)
        coasted = self._velocity * interval_s
        change = _over(limits.acceleration, interval_s, interval_s)
        return [
            (Intervention.ACCELERATION, coasted - change, coasted + change),
            (
                Intervention.POSITION,
                -self._brakable(self._position - limits.position_low, interval_s),
                self._brakable(limits.position_high - self._position, interval_s),
            ),
        ]

    def _brakable(self, room: np.ndarray, interval_s: float) -> np.ndarray:
        return brakable(room, self._limits.acceleration, interval_s)

    def _moved(self, target: np.ndarray, stages: list[Stage], interval_s: float) -> Governed:
        """Go towards a target as far as the stages allow, the last of them above all."""
        assert self._position is not None
        limits, before = self._limits, self._position
        rounding = _rounding(before, target)
        moved, reasons = _through(target - before, stages, rounding)
        action = _clipped(
            np.where(np.abs(target - before - moved) <= rounding, target, before + moved),
            np.minimum(limits.position_low, before),
            np.maximum(limits.position_high, before),
        )
        self._position = action
        if interval_s > 0.0:
            velocity = _clipped(moved / interval_s, -limits.velocity, limits.velocity)
            self._velocity = np.where(np.isinf(limits.acceleration), 0.0, velocity)
        return action, reasons


class VelocityGovernor:
    """Commanded velocities: within their limits, and so is their change from one to the next.

    Where positions are measured, a velocity is such that a period later there is still room to brake
    before the position limit. That gives way to the limit of acceleration where both cannot be.
    """

    def __init__(self, limits: Limits, period_s: float) -> None:
        self._limits = limits
        self._period_s = period_s
        self.reset()

    def reset(self) -> None:
        self._velocity = np.zeros(len(self._limits.names))

    @property
    def at_rest(self) -> bool:
        return not self._velocity.any()

    def admit(self, wanted: np.ndarray, measured: np.ndarray, interval_s: float) -> Governed:
        limits, period_s = self._limits, self._period_s
        target = _clipped(wanted, -limits.velocity, limits.velocity)
        reasons = [Intervention.VELOCITY] if (target != wanted).any() else []
        room_low = np.where(np.isnan(measured), np.inf, measured - limits.position_low)
        room_high = np.where(np.isnan(measured), np.inf, limits.position_high - measured)
        towards = (
            Intervention.POSITION,
            -brakable(room_low, limits.acceleration, period_s) / period_s,
            brakable(room_high, limits.acceleration, period_s) / period_s,
        )
        action, more = self._changed(target, [towards, self._always(interval_s)])
        return action, tuple(dict.fromkeys([*reasons, *more]))

    def hold(self, measured: np.ndarray, interval_s: float) -> np.ndarray:
        return self._changed(np.zeros_like(self._velocity), [self._always(interval_s)])[0]

    def _always(self, interval_s: float) -> Stage:
        change = _over(self._limits.acceleration, interval_s)
        return Intervention.ACCELERATION, self._velocity - change, self._velocity + change

    def _changed(self, target: np.ndarray, stages: list[Stage]) -> Governed:
        rounding = _rounding(self._velocity, target)
        velocity, reasons = _through(target, stages, rounding)
        self._velocity = np.where(np.abs(target - velocity) <= rounding, target, velocity)
        return self._velocity, reasons


class MagnitudeGovernor:
    """Commands that have a largest magnitude, and no past: accelerations and efforts. They hold with 0."""

    at_rest = True

    def __init__(self, largest: np.ndarray, reason: Intervention) -> None:
        self._largest = largest
        self._reason = reason

    def reset(self) -> None:
        pass

    def admit(self, wanted: np.ndarray, measured: np.ndarray, interval_s: float) -> Governed:
        action = _clipped(wanted, -self._largest, self._largest)
        return action, (self._reason,) if (action != wanted).any() else ()

    def hold(self, measured: np.ndarray, interval_s: float) -> np.ndarray:
        return np.zeros_like(self._largest)


def brakable(room: np.ndarray, acceleration: np.ndarray, interval_s: float) -> np.ndarray:
    """Return the largest displacement in an interval that leaves room to brake from its speed, (A,).

    The d that solves d + (d / dt)^2 / 2a = room; all of the room where a is unlimited.

    Args:
        room: (A,) to the limit; none where it is below 0.
        acceleration: (A,) with which one may brake.
        interval_s: that the displacement takes.
    """
    room = np.clip(room, 0.0, FAR)
    with np.errstate(over="ignore"):
        steepness = 2.0 * room / np.maximum(_over(acceleration, interval_s, interval_s), TINY)
    brakable: np.ndarray = 2.0 * room / (1.0 + np.sqrt(1.0 + steepness))
    return brakable


def _over(limit: np.ndarray, *intervals_s: float) -> np.ndarray:
    """Return a limit times intervals, (A,); what is unlimited stays so in no time."""
    product: np.ndarray = np.where(np.isinf(limit), 1.0, limit) * np.prod(intervals_s)
    return np.where(np.isinf(limit), np.inf, product)


def _clipped(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Clip; what is within keeps every bit, the sign of a zero too, and where low > high, high it is."""
    values = np.where(values < low, low, values)
    return np.where(values > high, high, values)


def _rounding(*terms: np.ndarray) -> np.ndarray:
    """Return by how much sums of these terms, (A,) each, may be off."""
    rounding: np.ndarray = ROUNDING * np.spacing(np.max(np.abs(terms), axis=0))
    return rounding


def _through(values: np.ndarray, stages: list[Stage], rounding: np.ndarray) -> Governed:
    """Clip by one stage after the other; return the reasons of those that changed more than rounding."""
    reasons = []
    for reason, low, high in stages:
        clipped = _clipped(values, low, high)
        if (np.abs(clipped - values) > rounding).any():
            reasons.append(reason)
        values = clipped
    return values, tuple(reasons)

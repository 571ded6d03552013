# SPDX-License-Identifier: Apache-2.0
"""The curve on which a controller follows the commands of positions, and when it begins each of them.

A controller that interpolates on its own way to each new point makes jerks: it starts from where it is
measured, or from a set point of the tick before. So each message carries the curve from now to rest, and the
controller samples the same curve whatever message it has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

LEAD_S = 0.01  # until a message is with the controller; at most `LEAD` periods
LEAD = 0.5
EARLY = 1e-6  # periods, for rounding
APART_S = 1e-6  # points that are closer are one: a controller refuses two with the same time
SHORTEST = 0.05  # periods between the begins of two commands
SLACK = 0.5  # of the lead, by which the clock of the limits may be off


@dataclass
class Schedule:
    """When the controller begins each command: a period after the one before, sent early or late.

    A command that is too late begins when it is there; from then on all are later by as much, by a period at
    most, so that equal jitter makes no command late again.

    Attributes:
        period_s: of the control.
        due_s: begin of the last command; -inf before the first.
    """

    period_s: float
    due_s: float = -math.inf

    @property
    def lead_s(self) -> float:
        """Time until a message is with the controller."""
        return min(LEAD_S, LEAD * self.period_s)

    def next_s(self, now_s: float) -> float:
        """Return when a command begins that is sent now."""
        least_s = now_s + self.lead_s
        return min(max(self.due_s + self.period_s, least_s), least_s + self.period_s)


class Curve(NamedTuple):
    """Points of a curve that is a cubic between each two of them.

    Attributes:
        times_s: (K,), increasing.
        places: (K, A).
        speeds: (K, A), per s.
    """

    times_s: np.ndarray
    places: np.ndarray
    speeds: np.ndarray

    def at(self, now_s: float) -> tuple[np.ndarray, np.ndarray]:
        """Return place and speed (A,) at a time; before and after the curve the robot rests at its ends."""
        times_s = self.times_s
        if not times_s[0] <= now_s < times_s[-1]:
            end = 0 if now_s < times_s[0] else -1
            return self.places[end], np.zeros_like(self.speeds[end])
        begin = int(np.searchsorted(times_s, now_s, side="right")) - 1
        passed_s, lasts_s = now_s - times_s[begin], times_s[begin + 1] - times_s[begin]
        (start, end), (first, last) = self.places[begin : begin + 2], self.speeds[begin : begin + 2]
        mean = (end - start) / lasts_s
        square, cube = (3.0 * mean - 2.0 * first - last) / lasts_s, (first + last - 2.0 * mean) / lasts_s**2
        return (
            start + passed_s * (first + passed_s * (square + passed_s * cube)),
            first + passed_s * (2.0 * square + passed_s * 3.0 * cube),
        )

    def between(self, begins_s: float, ends_s: float) -> Curve:
        """Return a part of the curve."""
        inside = (self.times_s > begins_s + APART_S) & (self.times_s < ends_s - APART_S)
        (first, start), (last, end) = self.at(begins_s), self.at(ends_s)
        return Curve(
            np.array([begins_s, *self.times_s[inside], ends_s]),
            np.array([first, *self.places[inside], last]),
            np.array([start, *self.speeds[inside], end]),
        )


class CommandCurve:
    """Lines from one command to the next, joined by parabolas: each lasts as long as the shorter line.

    So it stays between the commands, its speeds between theirs, and its acceleration is the change of speed
    from one command to the next, over that time: what is within the limits stays within them. Of commands in
    time it is the quadratic B-spline. It lags by half a period. Without a further command it ends at rest at
    the last one; a command that is too late leaves this tail, which may be a little faster, and brake harder.

    It has no clock: the caller passes the time, of the clock in which the controller reads the stamps.

    Args:
        period_s: of the control.
    """

    def __init__(self, period_s: float) -> None:
        self._schedule = Schedule(period_s)
        self._command: np.ndarray | None = None
        self._curve: Curve | None = None
        self._there_s = self._lasted_s = 0.0  # when the line is at the command, and how long it lasts

    def extend(self, now_s: float, before: np.ndarray, command: np.ndarray, since_s: float) -> Curve:
        """Return the curve from `LEAD_S` before now, for a clock that is late, to rest at a command.

        Args:
            now_s: the time.
            before: (A,), the command before; or another place where an entry at rest starts.
            command: (A,).
            since_s: from the begin of the command before to its own, by the schedule of its limits: a second
                look at a clock would make it slower or faster than they allow. Infinite for the first.
        """
        schedule, period_s = self._schedule, self._schedule.period_s
        goes_on = np.full(len(before), False) if self._command is None else before == self._command
        if self._curve is None or not goes_on.any() or now_s < self._curve.times_s[0]:  # the clock went back
            schedule.due_s = -math.inf
            self._curve = Curve(np.full(1, now_s), before[None], np.zeros((1, len(before))))
        step = command - before
        expected_s, slack_s = schedule.next_s(now_s), SLACK * schedule.lead_s
        begins_s = schedule.due_s + since_s
        first_s = now_s + schedule.lead_s - slack_s
        if not first_s <= begins_s <= first_s + period_s + 2.0 * slack_s:  # another clock, or it drifts
            begins_s = max(expected_s, schedule.due_s + min(since_s, period_s))
        begins_s = max(begins_s, schedule.due_s + SHORTEST * period_s)
        since_s, schedule.due_s = begins_s - schedule.due_s, begins_s
        lasts_s = min(since_s, period_s)
        speed, turn_s, in_time = step / lasts_s, 0.5 * lasts_s, since_s <= period_s * (1.0 + EARLY)
        turned_s = min(turn_s, 0.5 * self._lasted_s)
        if in_time:
            begins_s = self._there_s - 0.5 * self._lasted_s
        former = self._curve.between(now_s - LEAD_S, begins_s)
        former.places[:, ~goes_on], former.speeds[:, ~goes_on] = before[~goes_on], 0.0
        times_s, places, speeds = list(former.times_s), list(former.places), list(former.speeds)

        def add(at_s: float, place: np.ndarray, to: np.ndarray) -> None:
            if at_s > times_s[-1] + APART_S:
                times_s.append(at_s)
                places.append(place)
                speeds.append(to)

        if in_time:
            add(self._there_s - turned_s, before - turned_s * speeds[-1], speeds[-1])
            add(self._there_s + turned_s, before + turned_s * speed, speed)
        self._command, self._there_s, self._lasted_s = command, schedule.due_s + 1.5 * period_s, lasts_s
        add(self._there_s - turn_s, before + 0.5 * step, speed)
        add(self._there_s + turn_s, command, np.zeros_like(step))
        self._curve = Curve(np.array(times_s), np.array(places), np.array(speeds))
        return self._curve

    def again(self, now_s: float) -> Curve | None:
        """Return the curve again, for a message that repeats the last one; None without one."""
        curve = self._curve
        return None if curve is None else curve.between(now_s - LEAD_S, max(now_s, curve.times_s[-1]))

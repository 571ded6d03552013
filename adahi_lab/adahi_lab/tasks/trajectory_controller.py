# SPDX-License-Identifier: Apache-2.0
"""A model of ros2_control's joint_trajectory_controller (Jazzy), in continuous time.

It has no clock: the caller passes the time, in seconds of the stamps' clock.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adahi_ros.core.command_curve import Curve


class SetPoint(NamedTuple):
    """The controller's commands to the hardware.

    Attributes:
        positions, velocities: (A,) each.
    """

    positions: np.ndarray
    velocities: np.ndarray


class _Segment(NamedTuple):
    """The way to a point: its times in s, coefficients (4, A) of the time since it begins, and its end."""

    begins_s: float
    ends_s: float
    coefficients: np.ndarray
    end: SetPoint

    def at(self, now_s: float) -> SetPoint:
        """Return the set point of a time in the segment."""
        passed_s = max(0.0, now_s - self.begins_s)
        place, speed, square, cube = self.coefficients
        return SetPoint(
            place + passed_s * (speed + passed_s * (square + passed_s * cube)),
            speed + passed_s * (2.0 * square + passed_s * 3.0 * cube),
        )


class TrajectoryController:
    """Interpolates from where its set point is at receipt to the points to come, then holds the last one.

    Where the first point is in the past, it follows the points at once, also if its set point jumps.

    A trajectory replaces all of the former one, also the points that were not reached. The rule is the
    controller's with `interpolate_from_desired_state` and `allow_nonzero_velocity_at_trajectory_end`. A point
    with velocities is reached on a cubic, one without on a line. Entries are independent: a velocity of NaN
    is none.

    Args:
        positions: (A,) where it starts, at rest.

    Attributes:
        peak_speed: (A,) largest speed of any segment so far, by entry.
        peak_acceleration: (A,) largest acceleration of any segment. On a line it is the change of speed at
            receipt over the segment's duration.
        largest_jump: (A,) of the set point at receipt, where a trajectory has started elsewhere.
    """

    def __init__(self, positions: np.ndarray) -> None:
        self.peak_speed = np.zeros(len(positions))
        self.peak_acceleration = np.zeros(len(positions))
        self.largest_jump = np.zeros(len(positions))
        self.hold(positions, 0.0)

    def hold(self, positions: np.ndarray, now_s: float) -> None:
        """Stay at positions (A,) from now on; drop earlier trajectories."""
        positions = np.array(positions, np.float64)
        rest = np.zeros(len(positions))
        end = SetPoint(positions, rest)
        self._segments = [_Segment(now_s, now_s, np.array([positions, rest, rest, rest]), end)]

    def receive(self, curve: Curve, stamp_s: float, now_s: float) -> None:
        """Take a trajectory.

        Args:
            curve: its points, with times in s after the stamp; speeds are NaN where there are none.
            stamp_s: when the trajectory starts; 0 for at its receipt.
            now_s: time of receipt.

        Raises:
            ValueError: the times do not increase by a nanosecond each, or the last point is in the past; the
                controller keeps what it has.
        """
        if (np.diff(np.round(curve.times_s * 1e9)) <= 0.0).any():
            raise ValueError(f"points: time_from_start {curve.times_s.tolist()} s, must increase")
        times_s = (stamp_s or now_s) + curve.times_s
        if times_s[-1] < now_s:
            raise ValueError(
                f"header.stamp: {now_s - stamp_s:.3f} s old, must be at most {curve.times_s[-1]:g} s: "
                "the trajectory ends in the past"
            )
        before, self._segments = self.sample(now_s), []
        start, begins_s = before, now_s
        for ends_s, place, speed in zip(times_s.tolist(), curve.places, curve.speeds, strict=True):
            if ends_s >= now_s:
                self._segments.append(self._segment(start, place, speed, begins_s, ends_s))
            start, begins_s = SetPoint(place, np.where(np.isnan(speed), 0.0, speed)), ends_s
            if self._segments and np.isnan(speed).any():
                start = SetPoint(place, self._segments[-1].at(ends_s).velocities)
        self.largest_jump = np.maximum(
            self.largest_jump, np.abs(self.sample(now_s).positions - before.positions)
        )

    def sample(self, now_s: float) -> SetPoint:
        """Return the set point for a time; after the end it is the last point that was received."""
        for segment in self._segments:
            if now_s < segment.ends_s:
                return segment.at(now_s)
        return self._segments[-1].end

    def _segment(
        self,
        start: SetPoint,
        positions: np.ndarray,
        velocities: np.ndarray,
        now_s: float,
        ends_s: float,
    ) -> _Segment:
        """Return the way from a set point to a point, and record its peaks; arguments as `receive`."""
        left_s = ends_s - now_s
        distance = positions - start.positions
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(distance == 0.0, 0.0, distance / left_s)
        linear = np.isnan(velocities)
        wanted = np.where(linear, 0.0, velocities)
        end = SetPoint(np.array(positions, np.float64), wanted)
        coefficients = np.zeros((4, len(positions)))
        if left_s > 0.0:
            first = np.where(linear, slope, start.velocities)
            last = np.where(linear, slope, wanted)
            square = (3.0 * slope - 2.0 * first - last) / left_s
            cube = (first + last - 2.0 * slope) / left_s**2
            square, cube = np.where(linear, 0.0, square), np.where(linear, 0.0, cube)
            coefficients = np.array([start.positions, first, square, cube])
        segment = _Segment(now_s, ends_s, coefficients, end)
        self._note(segment, linear, slope, start.velocities)
        return segment

    def _note(self, segment: _Segment, linear: np.ndarray, slope: np.ndarray, before: np.ndarray) -> None:
        """Record the peaks of a new segment."""
        left_s = segment.ends_s - segment.begins_s
        if left_s <= 0.0:  # a jump
            jumps = np.where(slope == 0.0, 0.0, np.inf)
            speed = acceleration = jumps
        else:
            _, begin, square, cube = segment.coefficients
            with np.errstate(divide="ignore", invalid="ignore"):
                turns_s = -square / (3.0 * cube)
                turning = np.where(
                    (turns_s > 0.0) & (turns_s < left_s), begin - square**2 / (3.0 * cube), 0.0
                )
            end = begin + left_s * (2.0 * square + left_s * 3.0 * cube)
            speed = np.abs([begin, turning, end]).max(axis=0)
            on_a_cubic = np.maximum(np.abs(2.0 * square), np.abs(2.0 * square + 6.0 * cube * left_s))
            acceleration = np.where(linear, np.abs(slope - before) / left_s, on_a_cubic)
        self.peak_speed = np.maximum(self.peak_speed, speed)
        self.peak_acceleration = np.maximum(self.peak_acceleration, acceleration)

# SPDX-License-Identifier: Apache-2.0
"""A model of ros2_control's joint_trajectory_controller (Jazzy) for trajectories of one point.

It has no clock: the caller passes the time, in seconds of the stamps' clock.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class SetPoint(NamedTuple):
    """The controller's commands to the hardware.

    Attributes:
        positions, velocities: (A,) each.
    """

    positions: np.ndarray
    velocities: np.ndarray


class TrajectoryController:
    """Interpolates from where its set point is at receipt to the point received, then holds that point.

    The rule is the controller's with `interpolate_from_desired_state` and
    `allow_nonzero_velocity_at_trajectory_end`. A point with velocities is reached on a cubic, one without on
    a line. Entries are independent: a velocity of NaN is none.

    Args:
        positions: (A,) where it starts, at rest.

    Attributes:
        peak_speed: (A,) largest speed of any segment so far, by entry.
        peak_acceleration: (A,) largest acceleration of any segment. On a line it is the change of speed at
            receipt over the segment's duration.
    """

    def __init__(self, positions: np.ndarray) -> None:
        self.peak_speed = np.zeros(len(positions))
        self.peak_acceleration = np.zeros(len(positions))
        self.hold(positions, 0.0)

    def hold(self, positions: np.ndarray, now_s: float) -> None:
        """Stay at positions (A,) from now on; drop earlier trajectories."""
        positions = np.array(positions, np.float64)
        rest = np.zeros(len(positions))
        self._begins_s = self._ends_s = now_s
        self._end = SetPoint(positions, rest)
        self._coefficients = np.array([positions, rest, rest, rest])

    def receive(
        self,
        positions: np.ndarray,
        velocities: np.ndarray | None,
        stamp_s: float,
        time_from_start_s: float,
        now_s: float,
    ) -> None:
        """Take a trajectory of one point.

        Args:
            positions: (A,).
            velocities: (A,), NaN where there is none; None for none at all.
            stamp_s: when the trajectory starts; 0 for at its receipt.
            time_from_start_s: from then until the point is reached.
            now_s: time of receipt.

        Raises:
            ValueError: the trajectory ends in the past; the controller keeps what it has.
        """
        ends_s = (stamp_s or now_s) + time_from_start_s
        if ends_s < now_s:
            raise ValueError(
                f"header.stamp: {now_s - stamp_s:.3f} s old, must be at most {time_from_start_s:g} s: "
                "the trajectory ends in the past"
            )
        start, left_s = self.sample(now_s), ends_s - now_s
        distance = positions - start.positions
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(distance == 0.0, 0.0, distance / left_s)
        linear = np.isnan(velocities) if velocities is not None else np.ones(len(positions), bool)
        wanted = np.where(linear, 0.0, 0.0 if velocities is None else velocities)
        self._begins_s, self._ends_s = now_s, ends_s
        self._end = SetPoint(np.array(positions, np.float64), wanted)
        if left_s > 0.0:
            begin = np.where(linear, slope, start.velocities)
            end = np.where(linear, slope, wanted)
            square = (3.0 * slope - 2.0 * begin - end) / left_s
            cube = (begin + end - 2.0 * slope) / left_s**2
            square, cube = np.where(linear, 0.0, square), np.where(linear, 0.0, cube)
            self._coefficients = np.array([start.positions, begin, square, cube])
        self._note(linear, slope, start.velocities, left_s)

    def sample(self, now_s: float) -> SetPoint:
        """Return the set point for a time; after the end it is the point that was received."""
        if now_s >= self._ends_s:
            return self._end
        passed_s = max(0.0, now_s - self._begins_s)
        place, speed, square, cube = self._coefficients
        return SetPoint(
            place + passed_s * (speed + passed_s * (square + passed_s * cube)),
            speed + passed_s * (2.0 * square + passed_s * 3.0 * cube),
        )

    def _note(self, linear: np.ndarray, slope: np.ndarray, before: np.ndarray, left_s: float) -> None:
        """Record the peaks of the new segment."""
        if left_s <= 0.0:  # a jump
            jumps = np.where(slope == 0.0, 0.0, np.inf)
            speed = acceleration = jumps
        else:
            _, begin, square, cube = self._coefficients
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

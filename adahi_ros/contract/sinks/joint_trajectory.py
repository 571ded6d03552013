# SPDX-License-Identifier: Apache-2.0
"""A joint trajectory: the curve that a controller follows, or the point that it reaches in a period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.contract.sinks.interface import Command, MessageSink, New, checked, doubles, order, set_stamp
from adahi_ros.core.command_curve import Curve

LONGEST = 1024  # points of a trajectory that is read


@dataclass(frozen=True)
class JointTrajectorySink(MessageSink):
    """Commands joint_trajectory_controller."""

    kind = "trajectory_msgs/msg/JointTrajectory"
    zero_is_receipt = True

    def message(self, command: Command, new: New) -> Any:
        message, curve = new(self.kind), command.curve
        set_stamp(message, command.stamp_ns)
        message.joint_names = list(command.names)
        if curve is None:
            message.points = [self._point(command.field, command.action, command.period_s, new)]
            return message
        message.points = [
            self._point(command.field, place, time_s, new)
            for time_s, place in zip(curve.times_s.tolist(), curve.places, strict=True)
        ]
        for point, speed in zip(message.points, curve.speeds, strict=True):
            point.velocities = doubles(speed)
        return message

    def _point(self, field: str, values: np.ndarray, reached_s: float, new: New) -> Any:
        point = new("trajectory_msgs/msg/JointTrajectoryPoint")
        setattr(point, field, doubles(values))
        reached = point.time_from_start
        reached.sec, reached.nanosec = divmod(round(reached_s * NANOSECONDS), NANOSECONDS)
        return point

    def action(self, message: Any, names: Sequence[str], field: str) -> np.ndarray:
        places = order(message.joint_names, names)
        if not message.points:
            raise ValueError("points: none, must be at least one")
        last = len(message.points) - 1
        return checked(getattr(message.points[last], field), names, f"points[{last}].{field}")[places]

    def curve(self, message: Any, names: Sequence[str]) -> Curve | None:
        places, points = order(message.joint_names, names), message.points
        if not 1 <= len(points) <= LONGEST:
            raise ValueError(f"points: {len(points)}, must be from 1 to {LONGEST}")
        reached = [point.time_from_start for point in points]
        times_s = np.array([each.sec + each.nanosec / NANOSECONDS for each in reached])
        if (np.diff(times_s) <= 0.0).any():
            raise ValueError(f"points: time_from_start {times_s.tolist()} s, must increase")
        unknown = np.full(len(names), np.nan)
        return Curve(
            times_s,
            np.array(
                [
                    checked(each.positions, names, f"points[{place}].positions")[places]
                    for place, each in enumerate(points)
                ]
            ),
            np.array(
                [
                    checked(each.velocities, names, f"points[{place}].velocities")[places]
                    if len(each.velocities)
                    else unknown
                    for place, each in enumerate(points)
                ]
            ),
        )

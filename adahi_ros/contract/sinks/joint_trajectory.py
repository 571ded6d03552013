# SPDX-License-Identifier: Apache-2.0
"""A joint trajectory: the point that a controller reaches in one control period, perhaps more after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.contract.sinks.interface import Command, MessageSink, New, checked, doubles, order, set_stamp

SPACING_S = 1e-6  # times in messages are rounded down to ns


@dataclass(frozen=True)
class JointTrajectorySink(MessageSink):
    """Commands joint_trajectory_controller."""

    kind = "trajectory_msgs/msg/JointTrajectory"
    zero_is_receipt = True

    def message(self, command: Command, new: New) -> Any:
        message = new(self.kind)
        set_stamp(message, command.stamp_ns)
        message.joint_names = list(command.names)
        message.points = [
            self._point(command, number, values, new)
            for number, values in enumerate((command.action, *command.ahead), start=1)
        ]
        if command.velocities is not None and command.field == "positions":
            message.points[0].velocities = doubles(command.velocities)
        return message

    def _point(self, command: Command, number: int, values: np.ndarray, new: New) -> Any:
        point = new("trajectory_msgs/msg/JointTrajectoryPoint")
        setattr(point, command.field, doubles(values))
        reached, reached_s = point.time_from_start, number * command.period_s
        reached.sec, reached.nanosec = int(reached_s), int(reached_s % 1 * NANOSECONDS)
        return point

    def ahead(self, message: Any, names: Sequence[str], field: str) -> list[np.ndarray]:
        """Return the points (A,) after the first one; a simulator reads them.

        Raises:
            ValueError: as `action`; or they are not spaced by the time of the first point.
        """
        places, points = order(message.joint_names, names), message.points
        times_s = [each.time_from_start.sec + each.time_from_start.nanosec / NANOSECONDS for each in points]
        for number, time_s in enumerate(times_s, start=1):
            if abs(time_s - number * times_s[0]) > SPACING_S:
                raise ValueError(
                    f"points[{number - 1}].time_from_start: {time_s:g} s, must be {number * times_s[0]:g} s"
                )
        return [
            checked(getattr(point, field), names, f"points[{number}].{field}")[places]
            for number, point in enumerate(points[1:], start=1)
        ]

    def action(self, message: Any, names: Sequence[str], field: str) -> np.ndarray:
        places = order(message.joint_names, names)
        if not message.points:
            raise ValueError("points: none, must be at least one")
        return checked(getattr(message.points[0], field), names, f"points[0].{field}")[places]

    def reach(self, message: Any, names: Sequence[str]) -> tuple[np.ndarray | None, float]:
        places, point = order(message.joint_names, names), message.points[0]
        time_s = point.time_from_start.sec + point.time_from_start.nanosec / NANOSECONDS
        if not len(point.velocities):
            return None, time_s
        return checked(point.velocities, names, "points[0].velocities")[places], time_s

# SPDX-License-Identifier: Apache-2.0
"""One point of a joint trajectory, which a controller reaches in one control period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.contract.sinks.interface import Command, MessageSink, New, checked, doubles, order, set_stamp


@dataclass(frozen=True)
class JointTrajectorySink(MessageSink):
    """For joint_trajectory_controller."""

    kind = "trajectory_msgs/msg/JointTrajectory"
    zero_is_receipt = True

    def message(self, command: Command, new: New) -> Any:
        point = new("trajectory_msgs/msg/JointTrajectoryPoint")
        setattr(point, command.field, doubles(command.action))
        if command.velocities is not None and command.field == "positions":
            point.velocities = doubles(command.velocities)
        reached = point.time_from_start
        reached.sec, reached.nanosec = int(command.period_s), int(command.period_s % 1 * NANOSECONDS)
        message = new(self.kind)
        set_stamp(message, command.stamp_ns)
        message.joint_names, message.points = list(command.names), [point]
        return message

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

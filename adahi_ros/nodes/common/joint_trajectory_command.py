# SPDX-License-Identifier: Apache-2.0
"""A command as one point of a joint trajectory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.nodes.common.command_interfaces import CommandInterface, checked, order_of
from adahi_ros.nodes.common.messages import doubles, to_command


class JointTrajectoryInterface(CommandInterface):
    """One point of a joint trajectory, to be reached in one control period (joint_trajectory_controller)."""

    message_type = JointTrajectory
    zero_is_receipt = True

    def message(
        self,
        names: Sequence[str],
        field: str,
        action: np.ndarray,
        period_s: float,
        stamp_ns: int,
        velocities: np.ndarray | None = None,
    ) -> JointTrajectory:
        message = to_command(names, field, checked(action, names, field), period_s, stamp_ns)
        if velocities is not None and field == "positions":
            message.points[0].velocities = doubles(checked(velocities, names, "velocities"))
        return message

    def action(self, message: JointTrajectory, names: Sequence[str], field: str) -> np.ndarray:
        order = order_of(message.joint_names, names)
        if not message.points:
            raise ValueError("points: none, must be at least one")
        return checked(getattr(message.points[0], field), names, f"points[0].{field}")[order]

    def reach(self, message: JointTrajectory, names: Sequence[str]) -> tuple[np.ndarray | None, float]:
        order, point = order_of(message.joint_names, names), message.points[0]
        time_s = point.time_from_start.sec + point.time_from_start.nanosec / NANOSECONDS
        if not len(point.velocities):
            return None, time_s
        return checked(point.velocities, names, "points[0].velocities")[order], time_s

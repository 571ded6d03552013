# SPDX-License-Identifier: Apache-2.0
"""A command as joint velocities for one control period."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from std_msgs.msg import Header

from adahi_ros.nodes.common.command_interfaces import CommandInterface, checked, order_of
from adahi_ros.nodes.common.messages import doubles, to_stamp
from adahi_ros.nodes.common.parameters import ParameterError


class JointJogInterface(CommandInterface):
    """Joint velocities for one control period (MoveIt Servo)."""

    fields = ("velocities",)

    def __init__(self, frame_id: str = "") -> None:
        super().__init__(frame_id)
        try:
            from control_msgs.msg import JointJog
        except ImportError:  # it comes with ros2_control, not with ROS itself
            raise ParameterError(
                "command_interface: joint_jog needs control_msgs: apt install ros-$ROS_DISTRO-control-msgs"
            ) from None
        self.message_type = JointJog

    def message(
        self,
        names: Sequence[str],
        field: str,
        action: np.ndarray,
        period_s: float,
        stamp_ns: int,
        velocities: np.ndarray | None = None,
    ) -> Any:
        return self.message_type(
            header=Header(stamp=to_stamp(stamp_ns)),
            joint_names=list(names),
            velocities=doubles(checked(action, names, field)),
            duration=period_s,
        )

    def action(self, message: Any, names: Sequence[str], field: str) -> np.ndarray:
        order = order_of(message.joint_names, names)
        if len(message.displacements):
            raise ValueError(f"displacements: {list(message.displacements)}, must be none")
        return checked(message.velocities, names, "velocities")[order]

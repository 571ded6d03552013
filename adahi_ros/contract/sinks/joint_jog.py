# SPDX-License-Identifier: Apache-2.0
"""Joint velocities for one control period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adahi_ros.contract.sinks.interface import Command, MessageSink, New, checked, doubles, order, set_stamp


@dataclass(frozen=True)
class JointJogSink(MessageSink):
    """Commands MoveIt Servo, by joints."""

    kind = "control_msgs/msg/JointJog"
    fields = ("velocities",)

    def message(self, command: Command, new: New) -> Any:
        message = new(self.kind)
        set_stamp(message, command.stamp_ns)
        message.joint_names, message.velocities = list(command.names), doubles(command.action)
        message.duration = command.period_s
        return message

    def action(self, message: Any, names: Sequence[str], field: str) -> np.ndarray:
        places = order(message.joint_names, names)
        if len(message.displacements):
            raise ValueError(f"displacements: {list(message.displacements)}, must be none")
        return checked(message.velocities, names, "velocities")[places]

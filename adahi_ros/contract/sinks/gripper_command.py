# SPDX-License-Identifier: Apache-2.0
"""A gripper's position and effort."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adahi_ros.contract.sinks.interface import ActionSink
from adahi_ros.core.registry import argument


@dataclass(frozen=True)
class GripperCommandSink(ActionSink):
    """Commands gripper_action_controller, franka_gripper and MoveIt."""

    kind = "control_msgs/action/GripperCommand"

    max_effort: float = argument(0.0, "N or N m; 0 for the driver's default", 0.0, 1e4)

    def fill(self, goal: Any, name: str, position: float) -> None:
        goal.command.position, goal.command.max_effort = position, self.max_effort

    def position(self, goal: Any, name: str) -> float:
        return float(goal.command.position)

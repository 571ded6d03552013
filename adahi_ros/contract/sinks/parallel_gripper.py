# SPDX-License-Identifier: Apache-2.0
"""A gripper's position and effort as a joint state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adahi_ros.contract.sinks.interface import ActionSink
from adahi_ros.core.registry import argument


@dataclass(frozen=True)
class ParallelGripperSink(ActionSink):
    """Commands parallel_gripper_action_controller."""

    kind = "control_msgs/action/ParallelGripperCommand"

    max_effort: float = argument(0.0, "N or N m; 0 for the driver's default", 0.0, 1e4)

    def fill(self, goal: Any, name: str, position: float) -> None:
        goal.command.name, goal.command.position = [name], [position]
        if self.max_effort:
            goal.command.effort = [self.max_effort]

    def position(self, goal: Any, name: str) -> float:
        names, positions = list(goal.command.name), goal.command.position
        if names != [name] or len(positions) != 1:
            raise ValueError(f"command: {len(positions)} positions of {names}, must be one of [{name!r}]")
        return float(positions[0])

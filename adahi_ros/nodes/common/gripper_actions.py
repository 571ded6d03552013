# SPDX-License-Identifier: Apache-2.0
"""How a gripper's position becomes the goal of a ROS action, and is read back, as the simulator must."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from typing import Any

from adahi_ros.contract.contract import GRIPPER_ACTIONS
from adahi_ros.nodes.common.parameters import ParameterError


class GripperAction(ABC):
    """One kind of ROS action that moves a gripper to a position.

    Raises:
        ParameterError: its package is not there.
    """

    kind: str
    """Type of the action, as contracts name it."""

    def __init__(self) -> None:
        package, _, name = self.kind.split("/")
        try:
            module = importlib.import_module(f"{package}.action")
        except ImportError:  # it comes with ros2_control, not with ROS itself
            apt = f"ros-$ROS_DISTRO-{package.replace('_', '-')}"
            raise ParameterError(f"contract: {self.kind} needs {package}: apt install {apt}") from None
        self.action_type: Any = getattr(module, name, None)
        if self.action_type is None:
            raise ParameterError(f"contract: {self.kind}, the {package} that is installed has none")

    @abstractmethod
    def goal(self, joint: str, position: float, max_effort: float) -> Any:
        """Make a goal.

        Args:
            joint: whose position it is.
            position: m or rad.
            max_effort: N or N m; 0 for what the driver has by default.
        """

    @abstractmethod
    def position(self, goal: Any, joint: str) -> float:
        """Return the position of a goal.

        Raises:
            ValueError: names the goal's field, its value and what was expected.
        """


class GripperCommandAction(GripperAction):
    """A position and an effort (gripper_action_controller, franka_gripper, MoveIt)."""

    kind = GRIPPER_ACTIONS[0]

    def goal(self, joint: str, position: float, max_effort: float) -> Any:
        goal = self.action_type.Goal()
        goal.command.position, goal.command.max_effort = float(position), float(max_effort)
        return goal

    def position(self, goal: Any, joint: str) -> float:
        return float(goal.command.position)


class ParallelGripperAction(GripperAction):
    """A joint state (parallel_gripper_action_controller)."""

    kind = GRIPPER_ACTIONS[1]

    def goal(self, joint: str, position: float, max_effort: float) -> Any:
        goal = self.action_type.Goal()
        goal.command.name, goal.command.position = [joint], [float(position)]
        if max_effort:
            goal.command.effort = [float(max_effort)]
        return goal

    def position(self, goal: Any, joint: str) -> float:
        names, positions = list(goal.command.name), goal.command.position
        if names != [joint] or len(positions) != 1:
            raise ValueError(f"command: {len(positions)} positions of {names}, must be one of [{joint!r}]")
        return float(positions[0])


def gripper_action(kind: str) -> GripperAction:
    """Return the action of this type."""
    return {each.kind: each for each in (GripperCommandAction, ParallelGripperAction)}[kind]()

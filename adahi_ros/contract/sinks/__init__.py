# SPDX-License-Identifier: Apache-2.0
"""Command sinks: send commands to a robot's controllers; one file per type of message or ROS action.

Contracts name a sink by this type. A new sink is a file here and a line in `SINKS`, or an entry point.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from adahi_ros.contract.commanded import Commanded
from adahi_ros.contract.sinks.interface import CommandSink, MessageSink
from adahi_ros.core.registry import Registry, arguments_of

HERE = "adahi_ros.contract.sinks"
SINKS: Registry[type[CommandSink]] = Registry(
    "adahi_ros.sinks",
    {
        "trajectory_msgs/msg/JointTrajectory": f"{HERE}.joint_trajectory:JointTrajectorySink",
        "std_msgs/msg/Float64MultiArray": f"{HERE}.forward_command:ForwardCommandSink",
        "geometry_msgs/msg/TwistStamped": f"{HERE}.twist:TwistSink",
        "control_msgs/msg/JointJog": f"{HERE}.joint_jog:JointJogSink",
        "control_msgs/action/GripperCommand": f"{HERE}.gripper_command:GripperCommandSink",
        "control_msgs/action/ParallelGripperCommand": f"{HERE}.parallel_gripper:ParallelGripperSink",
    },
    base=CommandSink,
)
INTERFACES = {
    "joint_trajectory": "trajectory_msgs/msg/JointTrajectory",
    "forward_command": "std_msgs/msg/Float64MultiArray",
    "twist": "geometry_msgs/msg/TwistStamped",
    "joint_jog": "control_msgs/msg/JointJog",
}
"""Values of the parameter `command_interface`, and the types of their messages."""


def message_sink(
    kind: str, what: Commanded, given: Mapping[str, object] = MappingProxyType({})
) -> MessageSink:
    """Return the sink of a type of message, after a check that it can carry the commanded entries.

    Args:
        kind: a key of `SINKS`.
        what: the commanded entries.
        given: values of arguments, by name; unknown ones are ignored.

    Raises:
        ValueError: names the parameter, its value and what is allowed.
    """
    make = SINKS[kind]
    assert issubclass(make, MessageSink)
    name = next((name for name, each in INTERFACES.items() if each == kind), kind)
    if what.field not in make.fields:
        raise ValueError(
            f"command_interface: {name} carries {', '.join(make.fields)}, and command.field is {what.field!r}"
        )
    if make.names and not set(what.names) <= set(make.names):
        raise ValueError(
            f"command.joint_names: {list(what.names)}, must be of {', '.join(make.names)} for {name}"
        )
    known = arguments_of(make)
    return make(
        **{name: known[name].checked(value, "command.") for name, value in given.items() if name in known}
    )

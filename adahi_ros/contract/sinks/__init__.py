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


def message_sink(
    kind: str, what: Commanded, given: Mapping[str, object] = MappingProxyType({})
) -> MessageSink:
    """Return the sink of a type of message, after a check that it can carry the commanded entries.

    Args:
        kind: a key of `SINKS`.
        what: the commanded entries.
        given: values of arguments, by name; unknown ones are ignored.

    Raises:
        ValueError: names the type, or the argument, its value and what is allowed.
    """
    make = SINKS[kind]
    assert issubclass(make, MessageSink)
    if what.field not in make.fields:
        raise ValueError(f"contract: {kind} has {what.field}, must have {', '.join(make.fields)}")
    if make.names and not set(what.names) <= set(make.names):
        raise ValueError(f"contract: {kind} has {list(what.names)}, must have of {', '.join(make.names)}")
    known = arguments_of(make)
    return make(**{name: known[name].checked(value) for name, value in given.items() if name in known})

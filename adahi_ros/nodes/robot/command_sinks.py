# SPDX-License-Identifier: Apache-2.0
"""Where commands leave the robot's node, for each sink: a topic, or a gripper's ROS action."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Protocol

import numpy as np
from rclpy.lifecycle import LifecycleNode
from rclpy.qos_overriding_options import QoSOverridingOptions

from adahi_ros.contract.commanded import Commanded, check_topics_apart, interfaces_by_sink
from adahi_ros.contract.contract import Contract, Sink
from adahi_ros.nodes.common.command_interfaces import INTERFACE_OF_KIND, CommandInterface, command_interface
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import command_qos


class OpenSink(Protocol):
    """Takes one sink's part of every command."""

    holds_by_itself: bool
    """Once `hold` was called it takes no command that brakes."""

    @property
    def fault(self) -> str:
        """What keeps it from stopping the robot; empty where nothing does."""

    def send(self, command: np.ndarray, stamp_ns: int, velocities: np.ndarray | None = None) -> None:
        """Send a command.

        Args:
            command: (D,).
            stamp_ns: of the observation that it belongs to, 0 for none.
            velocities: (D,) at the commanded positions; None where they are unknown.
        """

    def hold(self) -> None:
        """Stop what goes on by itself: the robot is held."""


class TopicSink:
    """Publishes each command. Its time starts when it is sent, not with its observation.

    The observation is named by `DraftStatus`. Only in lockstep do commands carry its stamp.

    Args:
        node: gets the publisher.
        topic: relative, or absolute.
        what: is commanded there.
        interface: makes the messages.
        period_s: of the control.
        opened: what closes it.
        lockstep: commands carry the stamp of their observation.
    """

    holds_by_itself = False
    fault = ""

    def __init__(
        self,
        node: LifecycleNode,
        topic: str,
        what: Commanded,
        interface: CommandInterface,
        period_s: float,
        opened: ExitStack,
        lockstep: bool = False,
    ) -> None:
        self._clock = node.get_clock()
        self._lockstep = lockstep
        self._what = what
        self._interface = interface
        self._period_s = period_s
        # Not a lifecycle publisher: a robot that is deactivated amid a motion has yet to come to rest.
        self._out = node.create_publisher(
            interface.message_type,
            topic,
            command_qos(),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        opened.callback(node.destroy_publisher, self._out)

    def send(self, command: np.ndarray, stamp_ns: int, velocities: np.ndarray | None = None) -> None:
        what, interface = self._what, self._interface
        if what.field != "positions":
            velocities = None
        if not self._lockstep:
            stamp_ns = 0 if interface.zero_is_receipt else self._clock.now().nanoseconds
        self._out.publish(
            interface.message(what.names, what.field, command, self._period_s, stamp_ns, velocities)
        )

    def hold(self) -> None:
        """Nothing: the commands that are sent bring it to rest."""


def open_sinks(
    node: LifecycleNode,
    contract: Contract,
    parts: list[Commanded],
    interface: str,
    frame_id: str,
    opened: ExitStack,
    lockstep: bool = False,
) -> list[OpenSink]:
    """Open what takes the parts of a command, in the order of the contract.

    Args:
        node: gets publishers and clients.
        contract: of the robot.
        parts: what each sink commands.
        interface: name of the one of messages, or `BY_CONTRACT`.
        frame_id: of a twist.
        opened: what closes them.
        lockstep: commands carry the stamp of their observation, for a simulator that waits for each.

    Raises:
        ParameterError: one cannot be had, or does not fit; names parameter, value and what is allowed.
    """
    sinks = contract.action.sinks
    try:
        names = interfaces_by_sink(contract.action, interface, INTERFACE_OF_KIND)
        check_topics_apart(sinks, [node.resolve_topic_name(sink.channel.topic) for sink in sinks])
    except ValueError as error:
        raise ParameterError(str(error)) from None
    return [
        _gripper_sink(node, sink, opened)
        if sink.is_ros_action
        else TopicSink(
            node,
            sink.channel.topic,
            part,
            command_interface(name, part.names, part.field, frame_id),
            contract.period_s,
            opened,
            lockstep,
        )
        for sink, part, name in zip(sinks, parts, names, strict=True)
    ]


def _gripper_sink(node: LifecycleNode, sink: Sink, opened: ExitStack) -> OpenSink:
    from adahi_ros.nodes.common.gripper_actions import gripper_action
    from adahi_ros.nodes.robot.gripper_sink import GripperSink  # few robots have one

    return GripperSink(node, sink, gripper_action(sink.channel.kind), opened)

"""Where commands leave the robot's node: a topic, or a gripper's ROS action, for each sink."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial
from typing import Any, Protocol

import numpy as np
from rclpy.action import ActionClient  # type: ignore[attr-defined]
from rclpy.lifecycle import LifecycleNode
from rclpy.qos_overriding_options import QoSOverridingOptions

from adahi_ros.contract.commanded import Commanded, check_topics_apart, interfaces_by_sink
from adahi_ros.contract.contract import Contract, Sink
from adahi_ros.nodes.common.command_interfaces import INTERFACE_OF_KIND, CommandInterface, command_interface
from adahi_ros.nodes.common.gripper_actions import GripperAction, gripper_action
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import command_qos
from adahi_ros.safety.goals import Goals

WARNING_PERIOD_S = 5.0


class OpenSink(Protocol):
    """Takes one sink's part of every command."""

    holds_by_itself: bool
    """Once `hold` was called it takes no command that brakes."""

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
        if not self._lockstep:
            stamp_ns = 0 if interface.zero_is_receipt else self._clock.now().nanoseconds
        self._out.publish(
            interface.message(what.names, what.field, command, self._period_s, stamp_ns, velocities)
        )

    def hold(self) -> None:
        """Nothing: the commands that are sent bring it to rest."""


class GripperSink:
    """Sends a goal where another position is wanted; cancels it where the robot is held.

    A gripper that has reached its goal, or has grasped, stays as it is: cancelling what is over does nothing.

    Args:
        node: gets the client.
        sink: of the contract.
        action: makes the goals.
        opened: what closes it.
    """

    holds_by_itself = True

    def __init__(self, node: LifecycleNode, sink: Sink, action: GripperAction, opened: ExitStack) -> None:
        self._node = node
        self._sink = sink
        self._joint = sink.source.select[0].partition(".")[2]
        self._action = action
        self._goals = Goals()
        self._handle: Any = None
        self._client = ActionClient(node, action.action_type, sink.channel.topic)
        opened.callback(self._client.destroy)

    def send(self, command: np.ndarray, stamp_ns: int, velocities: np.ndarray | None = None) -> None:
        if not self._client.server_is_ready():
            self._node.get_logger().warning(
                f"{self._sink.key}: no server of {self._sink.channel.topic} ({self._sink.channel.kind})",
                throttle_duration_sec=WARNING_PERIOD_S,
            )
            self._goals.lost()
            return
        self._send(self._goals.want(float(command[0]), time.monotonic()))

    def hold(self) -> None:
        if self._goals.held:
            return
        self._goals.hold()
        self._cancel()

    def _send(self, position: float | None) -> None:
        if position is None:
            return
        goal = self._action.goal(self._joint, position, self._sink.max_effort)
        answered = partial(self._answered, self._goals.asked)
        self._client.send_goal_async(goal).add_done_callback(answered)

    def _answered(self, number: int, future: Any) -> None:
        handle = future.result()
        if not handle.accepted:
            self._node.get_logger().warning(
                f"{self._sink.key}: {self._sink.channel.topic} refuses a goal",
                throttle_duration_sec=WARNING_PERIOD_S,
            )
        elif number != self._goals.asked:  # too late: another goal has taken its place
            handle.cancel_goal_async()
        else:
            self._handle = handle
            if self._goals.held:  # meanwhile
                self._cancel()
        self._send(self._goals.answered(number, handle.accepted, time.monotonic()))

    def _cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel_goal_async()
            self._handle = None


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
        GripperSink(node, sink, gripper_action(sink.channel.kind), opened)
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

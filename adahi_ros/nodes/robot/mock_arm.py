# SPDX-License-Identifier: Apache-2.0
"""Plays an arm and its cameras by a contract: joints are at once where they are commanded, images are grey.

Publishes every observed topic of joint states and images at the contract's rate, and takes the commands:
messages on topics, and a gripper's goals. So a policy can run before there is an arm. It shows whether files,
names, sizes and rates fit together, and nothing of how an arm moves or of what a camera sees.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rclpy.action import ActionServer, CancelResponse  # type: ignore[attr-defined]
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile

from adahi_ros.contract.commanded import Commanded, commanded_by_sink
from adahi_ros.contract.contract import JOINT_STATE, Channel, Contract, Sink
from adahi_ros.contract.parsing import load_contract
from adahi_ros.contract.sinks import SINKS, message_sink
from adahi_ros.contract.sinks.interface import ActionSink, MessageSink
from adahi_ros.nodes.common.messages import to_image, to_joint_state, to_stamp
from adahi_ros.nodes.common.parameters import ParameterError, Parameters, parameter
from adahi_ros.nodes.common.qos import command_qos, message_type
from adahi_ros.nodes.common.spin import run
from adahi_ros.nodes.common.throttled_log import ThrottledLog
from adahi_ros.nodes.common.timers import steady_timer
from adahi_ros.nodes.robot.camera_messages import to_compressed
from adahi_ros.safety.limits_file import load_limits
from adahi_ros.safety.named_limits import limits_of_task, limits_path

IMAGES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
GREY, RED = 128, (200, 40, 40)


@dataclass(frozen=True)
class MockArmParameters:
    """Parameters of the node."""

    contract: str = parameter("so101", "Contract of the arm: a shipped contract's name, or a YAML file")
    limits: str = parameter(
        "",
        "Its limits, a shipped name or a file: where they exclude 0, a joint begins in their middle; empty "
        "for those of the contract's robot_type",
        optional=True,
    )


class MockArm(Node):
    """An arm's topics without the arm.

    Raises:
        ParameterError: names the parameter, its value and what is allowed.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("mock_arm", **options)
        values = Parameters(self, MockArmParameters).read()
        self._log = ThrottledLog(self)
        self.commands = 0
        """Commands so far, goals among them."""
        self._servers: list[ActionServer] = []
        try:
            contract = load_contract(values.contract)
            self._period_s = contract.period_s
            self.positions = _at_rest(contract, values.limits)
            """Of each joint by its name, rad or m."""
            for sink, what in zip(contract.action.sinks, commanded_by_sink(contract.action), strict=True):
                self._take(sink, what)
            shown = [self._shown(contract, channel) for channel in contract.channels.values()]
        except ValueError as error:
            self.destroy_node()
            raise ParameterError(str(error)) from None
        self._shown_at_each_step = [show for show in shown if show is not None]
        steady_timer(self, contract.period_s, self._show)
        self.get_logger().info(f"mock {contract.robot_type}: {len(self.positions)} joints, moves no real arm")

    def destroy_node(self) -> None:
        """End the node, and its action servers, which rclpy leaves."""
        while self._servers:
            self._servers.pop().destroy()
        super().destroy_node()

    def _take(self, sink: Sink, what: Commanded) -> None:
        topic, make = sink.channel.topic, SINKS[sink.channel.kind]
        if issubclass(make, ActionSink):
            server = ActionServer(
                self,
                message_type(sink.channel.kind),
                topic,
                partial(self._on_goal, make(**sink.arguments), what.names[0]),
                cancel_callback=lambda handle: CancelResponse.ACCEPT,
            )
            self._servers.append(server)
            return
        reader = message_sink(sink.channel.kind, what, sink.arguments)
        on_command = partial(self._on_command, reader, what)
        self.create_subscription(message_type(sink.channel.kind), topic, on_command, command_qos())

    def _on_command(self, reader: MessageSink, what: Commanded, message: object) -> None:
        try:
            values = reader.action(message, what.names, what.field)
        except ValueError as error:
            self._log.warning("command", f"ignored command: {error}")
            return
        self.commands += 1
        for name, value in zip(what.names, values.tolist(), strict=True):
            if what.field == "positions":
                self.positions[name] = value
            elif what.field == "velocities" and name in self.positions:
                self.positions[name] += value * self._period_s

    def _on_goal(self, reader: ActionSink, name: str, handle: Any) -> Any:
        try:
            self.positions[name] = reader.position(handle.request, name)
            self.commands += 1
            handle.succeed()
        except ValueError as error:
            self._log.warning("goal", f"refused goal: {error}")
            handle.abort()
        return message_type(reader.kind).Result()

    def _shown(self, contract: Contract, channel: Channel) -> Callable[[int], None] | None:
        """Return what publishes a topic's message with a stamp; None where it cannot be played."""
        if channel.kind == JOINT_STATE:
            sources = (*contract.numbers, *((contract.goal,) if contract.goal else ()))
            paths = [path for each in sources if each.channel.topic == channel.topic for path in each.select]
            names = list(dict.fromkeys(path.partition(".")[2] for path in paths))
            return partial(self._show_joints, self._publisher(channel), names)
        if channel.kind in IMAGES:
            camera = next(each for each in contract.cameras if each.channel.topic == channel.topic)
            message = _picture(channel.kind, camera.rows, camera.columns)
            return partial(self._show_picture, self._publisher(channel), message)
        self.get_logger().warning(f"not played: {channel.topic}, {channel.kind}; publish it yourself")
        return None

    def _publisher(self, channel: Channel) -> Publisher:
        durability = DurabilityPolicy[channel.durability.upper()]
        return self.create_publisher(
            message_type(channel.kind), channel.topic, QoSProfile(depth=channel.depth, durability=durability)
        )

    def _show(self) -> None:
        stamp_ns = self.get_clock().now().nanoseconds
        for show in self._shown_at_each_step:
            show(stamp_ns)

    def _show_joints(self, out: Publisher, names: list[str], stamp_ns: int) -> None:
        positions = np.array([self.positions[name] for name in names])
        out.publish(to_joint_state(names, positions, np.zeros(len(names)), stamp_ns))

    def _show_picture(self, out: Publisher, message: Any, stamp_ns: int) -> None:
        message.header.stamp = to_stamp(stamp_ns)
        out.publish(message)


def _at_rest(contract: Contract, named: str) -> dict[str, float]:
    """Return a position of each joint: 0, or the middle of its limits where they exclude 0."""
    rest = dict.fromkeys(contract.joint_names, 0.0)
    if named := named or limits_of_task(contract.robot_type):
        limits = load_limits(limits_path(named), contract.commanded_names)
        for name, low, high in zip(limits.names, limits.position_low, limits.position_high, strict=True):
            if not low <= 0.0 <= high:
                rest[name] = float(low + high) / 2.0
    return rest


def _picture(kind: str, rows: int, columns: int) -> Any:
    """Return a grey image with a red corner as a message."""
    pixels = np.full((rows, columns, 3), GREY, np.uint8)
    pixels[: rows // 4, : columns // 4] = RED
    if kind == IMAGES[0]:
        return to_image(pixels, 0)
    return to_compressed(pixels, 0)


def main() -> None:
    """Run the node as a process."""
    sys.exit(run(MockArm, __doc__ or "", MockArmParameters))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Receives a person's takeover and commands: `takeover` or a button of `joy`, and `teleop_command`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Joy
from std_msgs.msg import Bool

from adahi_ros.contract.assembler import Observation
from adahi_ros.contract.commanded import Commanded, commanded
from adahi_ros.contract.contract import GOALS, Contract
from adahi_ros.contract.fields import NAMED, FieldReader, InputError, stamp_ns
from adahi_ros.nodes.common.executors import with_info
from adahi_ros.nodes.common.qos import message_type
from adahi_ros.nodes.common.throttled_log import ThrottledLog
from adahi_ros.nodes.robot.command_publisher import CommandPublisher
from adahi_ros.nodes.robot.draft_policy_parameters import DraftPolicyParameters
from adahi_ros.nodes.robot.operator import age_of
from adahi_ros.robot.takeover_loop import TakeoverLoop
from adahi_ros.safety.takeover import COMMAND, POSITIONS, SIGNAL, PersonCommands, Takeover

KINDS = {
    "joint_state": "sensor_msgs/msg/JointState",
    "joint_trajectory": "trajectory_msgs/msg/JointTrajectory",
}
FIELDS = {
    "joint_state": {POSITIONS: "position", GOALS: "position", "velocities": "velocity", "effort": "effort"},
    "joint_trajectory": {
        GOALS: POSITIONS,
        **{each: each for each in (POSITIONS, "velocities", "accelerations", "effort")},
    },
}
"""By type of message, its field of each quantity."""
JOY = "joy"
DEPTH = 100  # a release must not replace a press
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)  # compatible with every publisher
MOST_READERS = 16
WARNING_PERIOD_S = 1.0


def loop_with_person(
    node: LifecycleNode,
    values: DraftPolicyParameters,
    contract: Contract,
    publisher: CommandPublisher,
    opened: ExitStack,
) -> Callable[..., TakeoverLoop]:
    """Return the control loop's class, bound to a person; arguments as `Teleoperator`.

    Raises:
        ValueError: parameters do not fit; names the parameter, its value and what is allowed.
    """
    button, late = values.takeover.button, values.command.late_steps
    if values.takeover.command not in KINDS:
        raise ValueError(f"takeover.button: {button}, must be -1 without takeover.command")
    if late:
        raise ValueError(f"command.late_steps: {late}, must be 0 with takeover.command")
    what = commanded(contract.action, values.command.joint_names, values.command.field)
    return partial(TakeoverLoop, person=Teleoperator(node, values, what, publisher, opened))


class Teleoperator:
    """A person who may drive the arm; see `Person` in `robot/takeover_loop.py`.

    Args:
        node: gets the subscriptions.
        values: its parameters.
        what: the entries of an action.
        publisher: commands the arm.
        opened: closes the subscriptions.

    Raises:
        ValueError: the message type has no field for a commanded quantity; names the parameter.
    """

    def __init__(
        self,
        node: LifecycleNode,
        values: DraftPolicyParameters,
        what: Commanded,
        publisher: CommandPublisher,
        opened: ExitStack,
    ) -> None:
        kind, self._button = values.takeover.command, values.takeover.button
        missing = sorted({each for each in what.fields if each not in FIELDS[kind]})
        if missing:
            raise ValueError(
                f"takeover.command: {kind!r}, must not be with {missing[0]}: it has no such field"
            )
        self._node, self._names = node, what.names
        self._paths = [
            f"{FIELDS[kind][field]}.{name}" for name, field in zip(what.names, what.fields, strict=True)
        ]
        self._kind = KINDS[kind]
        self._publisher = publisher
        self._takeover = Takeover(values.safety.enable_timeout_s)
        self._person = PersonCommands(
            self._takeover, publisher.commands, publisher.guard, what.fields, publisher.measured
        )
        self._log = ThrottledLog(node, WARNING_PERIOD_S)
        self._closed = False
        opened.callback(self._close)
        self._readers: dict[tuple[str, ...], tuple[list[int], FieldReader]] = {}
        signal = (Bool, SIGNAL, self._on_signal) if self._button < 0 else (Joy, JOY, self._on_joy)
        command = message_type(self._kind), COMMAND, self._on_command
        self._names_of: dict[str, str] = {}  # topics after remapping
        for (type_of, topic, called), qos in ((signal, QoSProfile(depth=DEPTH)), (command, NEWEST)):
            subscription = node.create_subscription(type_of, topic, with_info(called), qos)
            opened.callback(node.destroy_subscription, subscription)
            self._names_of[topic] = subscription.topic_name

    @property
    def drives(self) -> bool:
        """See `Person`."""
        return self._takeover.person

    @property
    def at_rest(self) -> bool:
        """See `Person`."""
        return not self._publisher.guard.moving

    def held(self) -> str:
        """See `Person`."""
        return self._takeover.held(time.monotonic())

    def send(self, observation: Observation) -> np.ndarray | None:
        """See `Person`."""
        outgoing = self._person.send(observation.read, time.monotonic())
        return self._publisher.pass_on(outgoing, observation)

    def _close(self) -> None:
        self._closed = True

    def _on_signal(self, message: Bool, info: Mapping[str, int]) -> None:
        self._signal(SIGNAL, bool(message.data), message, info)

    def _on_joy(self, message: Joy, info: Mapping[str, int]) -> None:
        if self._button >= len(message.buttons):
            count = len(message.buttons)
            self._log.warning(JOY, f"ignored: joy: {count} buttons, must have takeover.button {self._button}")
            return
        self._signal(JOY, bool(message.buttons[self._button]), message, info)

    def _signal(self, topic: str, value: bool, message: object, info: Mapping[str, int]) -> None:
        if self._closed:
            return
        before, now_s = self._takeover.person, time.monotonic()
        ignored = self._takeover.signal(value, self._age_of(message, info), self._publishers(topic), now_s)
        if ignored:
            self._log.warning(SIGNAL, f"ignored: {ignored}")
        if self._takeover.person != before:
            now = "a person drives" if self._takeover.person else "the policy gets the arm back"
            self._node.get_logger().info(f"takeover: {now}")

    def _on_command(self, message: Any, info: Mapping[str, int]) -> None:
        if self._closed:
            return
        fault, wanted = "", None
        try:
            wanted = self._read(message)
        except InputError as error:
            fault = str(error)
        about = self._age_of(message, info), self._publishers(COMMAND), time.monotonic()
        if (ignored := self._takeover.command(wanted, *about, fault)) and self.drives:
            self._log.warning(COMMAND, f"ignored: {ignored}")

    def _read(self, message: Any) -> np.ndarray:
        """Return the command (A,) in the messages' units, NaN for joints that the message does not name.

        Raises:
            InputError: it names none of them, or a number is missing or not finite.
        """
        names = tuple(getattr(message, NAMED[self._kind].names))
        if names not in self._readers:
            places = [place for place, name in enumerate(self._names) if name in names]
            reader = FieldReader(COMMAND, self._kind, [self._paths[place] for place in places] or self._paths)
            if not places:
                raise reader.unmatched(message)
            if len(self._readers) >= MOST_READERS:
                self._readers.clear()
            self._readers[names] = places, reader
        places, reader = self._readers[names]
        wanted = np.full(len(self._names), np.nan)
        wanted[places] = reader.read(message)  # in the order of its paths
        return wanted

    def _age_of(self, message: Any, info: Mapping[str, int]) -> float:
        """Return the age of a message, s: by its source timestamp or its header, whichever is older.

        A bag that is played back has old headers.
        """
        age_s = age_of(info.get("source_timestamp", 0) or info.get("received_timestamp", 0))
        header = getattr(message, "header", None)
        sent_ns = 0 if header is None else stamp_ns(header.stamp)
        if not sent_ns:
            return age_s
        by_header_s = 1e-9 * (self._node.get_clock().now().nanoseconds - sent_ns)
        return max(age_s, by_header_s, key=abs)

    def _publishers(self, topic: str) -> int:
        return self._node.count_publishers(self._names_of[topic])

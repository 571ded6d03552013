# SPDX-License-Identifier: Apache-2.0
"""Joins the commands of a simulated robot from several topics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from rclpy.node import Node
from rclpy.qos_overriding_options import QoSOverridingOptions

from adahi_lab.tasks.task_interface import TaskSpec
from adahi_ros.contract.commanded import Commanded, commanded_by_sink
from adahi_ros.contract.contract import Action
from adahi_ros.contract.parsing import load_contract
from adahi_ros.contract.sinks import message_sink
from adahi_ros.contract.sinks.interface import MessageSink
from adahi_ros.core.command_curve import Curve
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import command_qos, message_type

INTERFACES = {
    "joint_trajectory": "trajectory_msgs/msg/JointTrajectory",
    "forward_command": "std_msgs/msg/Float64MultiArray",
    "twist": "geometry_msgs/msg/TwistStamped",
    "joint_jog": "control_msgs/msg/JointJog",
}
"""Types of messages that a simulated controller takes, by short names."""

Input = tuple[str, Commanded, MessageSink]
"""A topic, the entries commanded there, and the reader of its messages."""

Stamped = tuple[np.ndarray, int | None]
"""An action (A,), and the stamp in ns of its observation: 0 where it has none, None where it is unknown."""


def check_takes(
    action: Action, parts: Sequence[Commanded], names: Sequence[str], field: str, kinds: Sequence[str]
) -> None:
    """Check that a robot with these entries accepts the commands of an action.

    Args:
        action: of the contract.
        parts: of its sinks.
        names: of the robot's entries.
        field: of the command message for these entries.
        kinds: of messages that the robot accepts.

    Raises:
        ValueError: it does not accept them; names the contract, its value and what is allowed.
    """
    commanded = [name for part in parts for name in part.names]
    if sorted(commanded) != sorted(names):
        raise ValueError(f"contract: commands {commanded}, must be {list(names)}")
    for sink, part in zip(action.sinks, parts, strict=True):
        if sink.channel.kind not in kinds or part.field != field:
            raise ValueError(
                f"contract: {sink.key} has {part.field} as {sink.channel.kind}, must have {field} as one of "
                f"{', '.join(kinds)}"
            )


class Joined:
    """Joins the commands of several sinks to whole actions.

    An action has the newest command of each sink, and the oldest of their observation stamps. There is none
    until each sink has received a command.

    Args:
        parts: of the sinks.
        names: of the entries of an action, in its order; each is in one part.
    """

    def __init__(self, parts: Sequence[Commanded], names: Sequence[str]) -> None:
        self._places = [[list(names).index(name) for name in part.names] for part in parts]
        self._size = len(names)
        self._newest: dict[int, tuple[np.ndarray, int | None]] = {}

    def add(self, sink: int, values: np.ndarray, stamp_ns: int | None) -> Stamped | None:
        """Take the command of a sink; return an action (A,) and its stamp, or None if there is none yet.

        Args:
            sink: its number.
            values: (D,) in the order of its part.
            stamp_ns: of its observation; 0 where it has none, None where it is unknown.
        """
        self._newest[sink] = values, stamp_ns
        if len(self._newest) < len(self._places):
            return None
        action = np.empty(self._size)
        for each, (part, _) in self._newest.items():
            action[self._places[each]] = part
        stamps = [stamp for _, stamp in self._newest.values() if stamp is not None]
        return action, min(stamps) if stamps else None


class CommandInputs:
    """Subscribes to the topics of a robot's commands, and forwards whole actions; see `Joined`.

    Args:
        node: gets the subscriptions.
        inputs: with all entries of an action, each on one.
        names: of these entries, in an action's order.
        on_action: gets an action (A,); its stamp in ns, 0 where it has none, None where its kind has none;
            and the curve of a trajectory that has all entries, None without.
        on_fault: gets the reason why a message was ignored.
    """

    def __init__(
        self,
        node: Node,
        inputs: Sequence[Input],
        names: Sequence[str],
        on_action: Callable[[np.ndarray, int | None, Curve | None], None],
        on_fault: Callable[[ValueError], None],
    ) -> None:
        self._inputs = inputs
        self._joined = Joined([what for _, what, _ in inputs], names)
        self._names = names
        self._on_action = on_action
        self._on_fault = on_fault
        for index, (topic, _, interface) in enumerate(inputs):
            node.create_subscription(
                message_type(interface.kind),
                topic,
                partial(self._received, index),
                command_qos(),
                qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            )

    def _received(self, index: int, message: object) -> None:
        _, what, interface = self._inputs[index]
        try:
            values = interface.action(message, what.names, what.field)
            alone = len(self._inputs) == 1 and what.field == "positions"
            curve = interface.curve(message, self._names) if alone else None
        except ValueError as fault:
            self._on_fault(fault)
            return
        whole = self._joined.add(index, values, interface.stamp_ns(message) if interface.stamped else None)
        if whole is not None:
            self._on_action(*whole, curve)


def inputs_of(contract: str, spec: TaskSpec, frame_id: str) -> list[Input]:
    """Return the command topics of a task's contract.

    Args:
        contract: name or file.
        spec: of the task.
        frame_id: of a twist.

    Raises:
        ParameterError: the contract's actions are not this task's, or the simulator cannot read them; names
            the parameter, its value and what is allowed.
    """
    try:
        action = load_contract(contract).action
        parts = commanded_by_sink(action)
        check_takes(action, parts, spec.commanded, spec.command_field, tuple(INTERFACES.values()))
        return [
            (
                sink.channel.topic,
                part,
                message_sink(sink.channel.kind, part, {"frame_id": frame_id, **sink.arguments}),
            )
            for sink, part in zip(action.sinks, parts, strict=True)
        ]
    except ValueError as error:
        raise ParameterError(str(error)) from None

# SPDX-License-Identifier: Apache-2.0
"""What a simulated robot is commanded on several topics, put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.qos_overriding_options import QoSOverridingOptions

from adahi_ros.contract.commanded import Commanded, Joined, check_takes, commanded_by_sink
from adahi_ros.contract.parsing import load_contract
from adahi_ros.contract.sinks.interface import MessageSink
from adahi_ros.contract.sinks.registry import INTERFACES, message_sink
from adahi_ros.lab.tasks.task_interface import TaskSpec
from adahi_ros.nodes.common.message_types import message_type
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import command_qos

Input = tuple[str, Commanded, MessageSink]
"""A topic, what is commanded there, and what reads its messages."""


class CommandInputs:
    """Subscribes to the topics of a robot's commands, and hands on whole actions; see `Joined`.

    Args:
        node: gets the subscriptions.
        inputs: that all entries of an action are on, each on one.
        names: of these entries, in an action's order.
        on_action: gets an action (A,); its stamp in ns, 0 where it has none, None where its kind cannot have
            one; velocities (A,) at its positions, NaN where there are none; and in how many seconds it is to
            be reached, None where it does not say.
        on_fault: gets the reason why a message was ignored.
    """

    def __init__(
        self,
        node: Node,
        inputs: Sequence[Input],
        names: Sequence[str],
        on_action: Callable[[np.ndarray, int | None, np.ndarray, float | None], None],
        on_fault: Callable[[ValueError], None],
    ) -> None:
        self._inputs = inputs
        self._joined = Joined([what for _, what, _ in inputs], names)
        self._velocities = Joined([what for _, what, _ in inputs], names)
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

    def _received(self, index: int, message: Any) -> None:
        _, what, interface = self._inputs[index]
        try:
            values = interface.action(message, what.names, what.field)
            velocities, time_s = interface.reach(message, what.names)
        except ValueError as fault:
            self._on_fault(fault)
            return
        whole = self._joined.add(index, values, interface.stamp_ns(message) if interface.stamped else None)
        without = np.full(len(values), np.nan)
        speeds = self._velocities.add(index, without if velocities is None else velocities, None)
        if whole is not None and speeds is not None:
            self._on_action(*whole, speeds[0], time_s)


def inputs_of(contract: str, spec: TaskSpec, frame_id: str) -> list[Input]:
    """Return where a task is commanded by a contract.

    Args:
        contract: name or file.
        spec: of the task.
        frame_id: of a twist.

    Raises:
        ParameterError: the contract's actions are not this task's, or nobody here takes them; names the
            parameter, its value and what is allowed.
    """
    try:
        action = load_contract(contract).action
        parts = commanded_by_sink(action, spec.commanded, spec.command_field)
        check_takes(action, parts, spec.commanded, spec.command_field, tuple(INTERFACES.values()))
        return [
            (sink.channel.topic, part, message_sink(sink.channel.kind, part, frame_id, sink.arguments))
            for sink, part in zip(action.sinks, parts, strict=True)
        ]
    except ValueError as error:
        raise ParameterError(str(error)) from None

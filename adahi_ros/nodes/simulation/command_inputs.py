"""What a simulated robot is commanded on several topics, put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.qos_overriding_options import QoSOverridingOptions

from adahi_ros.contract.commanded import Commanded, commanded_by_sink
from adahi_ros.contract.parsing import load_contract
from adahi_ros.nodes.common.command_interfaces import INTERFACE_OF_KIND, CommandInterface, command_interface
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import command_qos
from adahi_ros.tasks.base import TaskSpec

Input = tuple[str, Commanded, CommandInterface]
"""A topic, what is commanded there, and what reads its messages."""


class CommandInputs:
    """Subscribes to the topics of a robot's commands, and hands on whole actions.

    An action is of the newest message of each topic, and belongs to the oldest observation that one of them
    belongs to. There is none until each topic has had one.

    Args:
        node: gets the subscriptions.
        inputs: that all entries of an action are on, each on one.
        names: of these entries, in an action's order.
        on_action: told an action (A,) and its stamp in ns: 0 where it is of none, None where it cannot tell.
        on_fault: told why a message was ignored.
    """

    def __init__(
        self,
        node: Node,
        inputs: Sequence[Input],
        names: Sequence[str],
        on_action: Callable[[np.ndarray, int | None], None],
        on_fault: Callable[[ValueError], None],
    ) -> None:
        self._inputs = inputs
        self._places = [[list(names).index(name) for name in what.names] for _, what, _ in inputs]
        self._on_action = on_action
        self._on_fault = on_fault
        self._size = len(names)
        self._newest: dict[int, tuple[np.ndarray, int | None]] = {}
        for index, (topic, _, interface) in enumerate(inputs):
            node.create_subscription(
                interface.message_type,
                topic,
                partial(self._received, index),
                command_qos(),
                qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            )

    def _received(self, index: int, message: Any) -> None:
        _, what, interface = self._inputs[index]
        try:
            values = interface.action(message, what.names, what.field)
        except ValueError as fault:
            self._on_fault(fault)
            return
        self._newest[index] = values, interface.stamp_ns(message) if interface.stamped else None
        if len(self._newest) < len(self._inputs):
            return
        action = np.empty(self._size)
        for each, (part, _) in self._newest.items():
            action[self._places[each]] = part
        stamps = [stamp for _, stamp in self._newest.values() if stamp is not None]
        self._on_action(action, min(stamps) if stamps else None)


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
    except ValueError as error:
        raise ParameterError(str(error)) from None
    names = [name for part in parts for name in part.names]
    if sorted(names) != sorted(spec.commanded):
        raise ParameterError(f"contract: commands {names}, must be {list(spec.commanded)} of {spec.name}")
    inputs = []
    for sink, part in zip(action.sinks, parts, strict=True):
        if sink.channel.kind not in INTERFACE_OF_KIND or part.field != spec.command_field:
            raise ParameterError(
                f"contract: {sink.key} has {part.field} as {sink.channel.kind}, the simulator takes "
                f"{spec.command_field} as one of {', '.join(INTERFACE_OF_KIND)}"
            )
        interface = command_interface(INTERFACE_OF_KIND[sink.channel.kind], part.names, part.field, frame_id)
        inputs.append((sink.channel.topic, part, interface))
    return inputs

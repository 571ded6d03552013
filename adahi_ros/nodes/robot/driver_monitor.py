# SPDX-License-Identifier: Apache-2.0
"""Subscribes to the states of a robot's driver, and reports when they stop or allow motion."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from adahi_ros.contract.monitors import Monitor, Value
from adahi_ros.nodes.common.qos import message_type
from adahi_ros.nodes.common.timers import steady_timer
from adahi_ros.safety.driver_state import DriverState

LOOK_PERIOD_S = 0.1  # how often timeouts are checked


class DriverMonitor:
    """Calls back whenever the driver's state changes between running and anything else.

    The first call comes from the constructor: the driver does not run before its first message.

    Args:
        node: gets subscriptions and a timer.
        monitors: of the contract.
        on_fault: called with a text for people when the driver stops allowing motion, or its text changes.
        on_running: called when all monitors allow motion again.
        opened: closes the subscriptions.

    Raises:
        ParameterError: a message type is not installed; names its package.
    """

    def __init__(
        self,
        node: Node,
        monitors: Sequence[Monitor],
        on_fault: Callable[[str], None],
        on_running: Callable[[], None],
        opened: ExitStack,
    ) -> None:
        self._state = DriverState(monitors)
        self._on_fault, self._on_running = on_fault, on_running
        self._fault = ""
        self._closed = False
        opened.callback(self._close)
        kinds = [message_type(monitor.type) for monitor in monitors]
        for index, (monitor, kind) in enumerate(zip(monitors, kinds, strict=True)):
            called = partial(self._received, index, monitor.field)
            subscription = node.create_subscription(kind, monitor.topic, called, _qos(monitor))
            opened.callback(node.destroy_subscription, subscription)
        if monitors:
            steady_timer(node, LOOK_PERIOD_S, self._look, opened)
            self._look()

    def _close(self) -> None:
        self._closed = True

    def _received(self, index: int, field: str, message: object) -> None:
        if self._closed:  # the events executor queued this message before the subscription was destroyed
            return
        self._state.seen(index, _value(message, field), time.monotonic())
        self._look()

    def _look(self) -> None:
        before, self._fault = self._fault, self._state.fault(time.monotonic())
        if self._fault == before:
            return
        if self._fault:
            self._on_fault(self._fault)
        else:
            self._on_running()


def _qos(monitor: Monitor) -> QoSProfile:
    if monitor.latched:
        durability, reliability = DurabilityPolicy.TRANSIENT_LOCAL, ReliabilityPolicy.RELIABLE
    else:  # compatible with every publisher
        durability, reliability = DurabilityPolicy.VOLATILE, ReliabilityPolicy.BEST_EFFORT
    return QoSProfile(depth=10, durability=durability, reliability=reliability)


def _value(message: Any, field: str) -> Value | None:
    """Return the value at a dotted path; None where there is none that can be compared."""
    value = message
    for part in field.split("."):
        try:
            value = value[int(part)] if part.isdecimal() else getattr(value, part)
        except (AttributeError, IndexError, TypeError):
            return None
    if isinstance(value, bytes) and len(value) == 1:  # rclpy's `byte`
        return value[0]
    if hasattr(value, "item") and not hasattr(value, "__len__"):  # a number of an array
        value = value.item()
    return value if isinstance(value, int | str) else None

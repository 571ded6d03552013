# SPDX-License-Identifier: Apache-2.0
"""Subscribes to the states of a robot's driver, and reports when they stop or allow motion."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from adahi_ros.contract.monitors import Monitor, Value
from adahi_ros.nodes.common.executors import with_info
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import message_type
from adahi_ros.nodes.common.timers import steady_timer
from adahi_ros.nodes.robot.operator import ALL, PublisherWatch, age_of
from adahi_ros.safety.driver_state import DriverState
from adahi_ros.safety.sole_publisher import SolePublisher

ACTIVITY = "controller_manager_msgs/msg/ControllerManagerActivity"
LOOK_PERIOD_S = 0.1  # how often timeouts are checked


class DriverMonitor:
    """Calls back whenever the driver's state changes. It outlasts the configuration that needed it.

    The first call comes from the constructor: nothing is known before the first message.

    Attributes:
        monitors: of the contract.

    Args:
        node: gets subscriptions and a timer.
        monitors: see above.
        on_state: called with a text for people, empty where the driver runs, and whether the state is known.
        on_inactive: called before that with the full name of a controller that is not active; empty for
            hardware.

    Raises:
        ParameterError: a message type is not installed; names its package.
    """

    def __init__(
        self,
        node: Node,
        monitors: Sequence[Monitor],
        on_state: Callable[[str, bool], None],
        on_inactive: Callable[[str], None] = lambda controller: None,
    ) -> None:
        self.monitors = tuple(monitors)
        self._node = node
        self._watched = [each for each in monitors if not each.optional or _installed(each)]
        self._state = DriverState(self._watched)
        self._on_state, self._on_inactive = on_state, on_inactive
        self._said: tuple[str, bool] | None = None
        self._opened = ExitStack()
        self._kinds = [message_type(monitor.type) for monitor in self._watched]
        self._subscribed = [ExitStack() for _ in self._watched]
        self._watches: dict[int, PublisherWatch] = {}
        for index, opened in enumerate(self._subscribed):
            self._opened.callback(opened.close)
            self._subscribe(index)
        if self._watched:
            steady_timer(node, LOOK_PERIOD_S, self._check_publishers, self._opened)
        self._check_publishers()

    def close(self) -> None:
        """Watch no more."""
        self._said = None
        self._opened.close()

    def _subscribe(self, index: int) -> None:
        """Subscribe, also a second time: then it gets what the present publisher has latched."""
        monitor, opened = self._watched[index], self._subscribed[index]
        opened.close()
        called = with_info(partial(self._received, index, monitor.field))
        subscribe = partial(self._node.create_subscription, self._kinds[index], monitor.topic, called)
        subscriptions = [subscribe(qos_profile=qos) for qos in _qos(monitor)]
        for subscription in subscriptions:
            opened.callback(self._node.destroy_subscription, subscription)
        watch = PublisherWatch(self._node, subscriptions[0], monitor.type, SolePublisher())
        opened.callback(watch.close)
        self._watches[index] = watch

    def _received(self, index: int, field: str, message: object, info: Mapping[str, int]) -> None:
        if self._said is None:  # queued by the events executor before its subscription was destroyed
            return
        now_s = time.monotonic()
        sender = self._watches[index].knows(now_s - max(0.0, age_of(info.get("received_timestamp", 0))))
        self._published(index)
        value, monitor = _value(message, field), self._watched[index]
        if sender is not None and monitor.type == ACTIVITY and (value is None or not monitor.allows(value)):
            manager = self._node.resolve_topic_name(monitor.topic).rpartition("/")[0]
            kind, _, rest = field.partition(".")
            name = f"{manager.rpartition('/')[0]}/{rest.partition('.')[0]}"
            self._on_inactive(name if kind == "controllers" else "")
        ignored = self._state.seen(index, value, now_s, known=sender is not None)
        if ignored and monitor.latched and len(self._watches[index].names) == 1:
            self._subscribe(index)
        self._say()

    def _check_publishers(self) -> None:
        for index, watch in self._watches.items():
            watch.read_publishers()
            self._published(index)
        self._say()

    def _published(self, index: int) -> None:
        if self._state.published(index, self._watches[index].names):
            self._subscribe(index)

    def _say(self) -> None:
        before, self._said = self._said, self._state.fault(time.monotonic())
        if self._said != before:
            self._on_state(*self._said)


def _installed(monitor: Monitor) -> bool:
    try:
        message_type(monitor.type)
    except ParameterError:
        return False
    return True


def _qos(monitor: Monitor) -> tuple[QoSProfile, ...]:
    """Return the QoS of its subscriptions.

    A reliable one receives every change. A best-effort one is compatible with every publisher.
    """
    reliable, best_effort = ReliabilityPolicy.RELIABLE, ReliabilityPolicy.BEST_EFFORT
    if monitor.latched:
        latched = DurabilityPolicy.TRANSIENT_LOCAL
        return (QoSProfile(history=ALL, durability=latched, reliability=reliable),)
    return tuple(QoSProfile(history=ALL, reliability=each) for each in (best_effort, reliable))


def _value(message: Any, field: str) -> Value | None:
    """Return the value at a dotted path; None where there is none that can be compared."""
    value = message
    for part in field.split("."):
        try:
            if isinstance(value, list) and not part.isdecimal():
                (value,) = (each for each in value if each.name == part)
            else:
                value = value[int(part)] if part.isdecimal() else getattr(value, part)
        except (AttributeError, IndexError, TypeError, ValueError):
            return None
    if isinstance(value, bytes) and len(value) == 1:  # rclpy's `byte`
        return value[0]
    if hasattr(value, "item") and not hasattr(value, "__len__"):  # a number of an array
        value = value.item()
    return value if isinstance(value, int | str) else None

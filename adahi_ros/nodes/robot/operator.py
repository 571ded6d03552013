# SPDX-License-Identifier: Apache-2.0
"""The operator's inputs: the deadman on `enable`, a takeover, and the services for both.

They exist as long as the node does, so that what the operator has said survives every transition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from sensor_msgs.msg import Joy
from std_msgs.msg import Bool
from std_srvs.srv import SetBool, Trigger

from adahi_ros.contract.fields import NANOSECONDS, stamp_ns
from adahi_ros.nodes.common.deferred_service import DeferredService
from adahi_ros.nodes.common.executors import sequence_of, with_info
from adahi_ros.nodes.common.graph import publishers_of
from adahi_ros.nodes.common.reachable import ServiceReplies
from adahi_ros.nodes.common.throttled_log import ThrottledLog
from adahi_ros.nodes.common.timers import steady_timer
from adahi_ros.safety.permission import OTHERS, Permission, Press
from adahi_ros.safety.sole_publisher import SolePublisher
from adahi_ros.safety.takeover import SIGNAL

ALL = HistoryPolicy.KEEP_ALL  # one queue for all publishers: a flood of true must not displace a false
RELIABLE = QoSProfile(history=ALL)
EVERY = QoSProfile(history=ALL, reliability=ReliabilityPolicy.BEST_EFFORT)  # matches every publisher
CALLS = QoSProfile(history=ALL)
BOOL = "std_msgs/msg/Bool"
TIMEOUT_S = 0.5  # before the node is configured
LOOK_PERIOD_S = 0.1
JOY = "joy"
POLICY_HAS_IT = "the policy gets the arm back"


class PublisherWatch:
    """Looks who publishes on the topic of a subscription.

    Attributes:
        publishers: see below.
        names: node name of each publisher at the last look, by GID.

    Args:
        node: that subscribes.
        subscription: of the topic; every publisher that counts matches it.
        kind: of its messages, such as std_msgs/msg/Bool.
        publishers: new ones, which are kept up to date.
    """

    def __init__(self, node: Node, subscription: Subscription, kind: str, publishers: SolePublisher) -> None:
        self._node = node
        self._topic, self._kind = subscription.topic_name, kind
        self.publishers = publishers
        self.names: dict[bytes, str] = {}
        self._matched = _matched_event(subscription)
        self.read_publishers()

    def close(self) -> None:
        """Look no more; the subscription may be destroyed."""
        if self._matched is not None:
            self._matched.destroy_when_not_in_use()
            self._matched = None

    def knows(self, arrived_s: float) -> bytes | None:
        """Look, and return who sent a message that arrived then; None if it may be another publisher's."""
        self.read_publishers(arrived_s)
        return self.publishers.gid if self.publishers.since_s <= arrived_s else None

    def read_publishers(self, arrived_s: float | None = None) -> None:
        """Look now: at every message, with the time when it arrived, and often between messages."""
        self.names = publishers_of(self._node, self._topic, self._kind)
        gids = frozenset(self.names)
        matched = None if self._matched is None else self._matched.take_event()
        self.publishers.note_publishers(
            gids, None if matched is None else matched.total_count, time.monotonic(), arrived_s
        )


def _matched_event(subscription: Subscription) -> Any:
    """Return the event that counts all publishers so far, or None where rclpy has none (Humble)."""
    kinds = getattr(rclpy_implementation, "rcl_subscription_event_type_t", None)
    kind = getattr(kinds, "RCL_SUBSCRIPTION_MATCHED", None)
    if kind is None:
        return None
    with subscription.handle:
        return rclpy_implementation.EventHandle(subscription.handle, kind)


class OperatorInputs:
    """Receives the operator's inputs.

    Attributes:
        permission: of the operator to move, with all holds of the arm.
        commands: who publishes the commands of a person, where one may take over.

    Args:
        node: gets the subscriptions, the service and a timer.
        active: whether the node is active; only an active node can be enabled by the service.
        changed: called after every message on `enable`, every call, and every change of who drives.
    """

    def __init__(self, node: LifecycleNode, active: Callable[[], bool], changed: Callable[[], None]) -> None:
        self._node = node
        self._active = active
        self._changed = changed
        self._log = ThrottledLog(node)
        self.permission = Permission(True, TIMEOUT_S)
        # A false counts of every publisher; a press only of a reliable one, of which no message is lost.
        on_enable, on_any = with_info(self._on_enable), with_info(self._on_any_enable)
        node.create_subscription(Bool, "enable", on_enable, RELIABLE)
        enable = node.create_subscription(Bool, "enable", on_any, EVERY)
        self._enable = PublisherWatch(node, enable, BOOL, self.permission.publishers)
        self._signal: tuple[int, list[Subscription], PublisherWatch] | None = None
        self.commands: PublisherWatch | None = None
        self._service = DeferredService(node, SetBool, "~/set_enabled", self._on_set_enabled, CALLS)
        self._give_back = DeferredService(node, Trigger, "~/give_back", self._on_give_back, CALLS)
        self._replies = ServiceReplies()
        for service in (self._service, self._give_back):
            self._replies.guard(service)
        steady_timer(node, LOOK_PERIOD_S, self._read_publishers)

    def watch_takeover(self, button: int) -> None:
        """Receive takeovers from now on, of a button of joy; of the topic `takeover` if it is below 0."""
        if self._signal is not None:
            if self._signal[0] == button:
                return
            self._signal[2].close()
            for subscription in self._signal[1]:
                self._node.destroy_subscription(subscription)
        kind, name, topic = (Bool, BOOL, SIGNAL) if button < 0 else (Joy, "sensor_msgs/msg/Joy", JOY)
        called = with_info(self._on_signal if button < 0 else self._on_joy)
        subscribe = self._node.create_subscription
        subscriptions = [subscribe(kind, topic, called, qos) for qos in (RELIABLE, EVERY)]
        publishers = self.permission.takeover.subscribed(SIGNAL)
        watch = PublisherWatch(self._node, subscriptions[-1], name, publishers)
        self._signal = button, subscriptions, watch

    def close(self) -> None:
        """Look no more: the node is destroyed."""
        self._enable.close()
        for watch in (self.commands, self._signal and self._signal[2]):
            if watch:
                watch.close()

    def _read_publishers(self) -> None:
        self._enable.read_publishers()
        if self._signal is not None:
            self._signal[2].read_publishers()

    def _on_enable(self, message: Bool, info: Mapping[str, int]) -> None:
        press, now_s = press_of(message.data, info), time.monotonic()  # together: looking takes time
        self._enable.read_publishers(now_s - max(0.0, press.waited_s))
        ignored = self.permission.receive(press, now_s)
        if ignored:
            self._log.warning("enable", f"ignored: {ignored}")
        self._changed()

    def _on_any_enable(self, message: Bool, info: Mapping[str, int]) -> None:
        if message.data:
            self.permission.used()
            return
        press, now_s = press_of(False, info), time.monotonic()
        self._enable.read_publishers(now_s - max(0.0, press.waited_s))  # its reliable copy may come later
        self.permission.stop(press, now_s)
        self._changed()

    def _on_set_enabled(self, request: SetBool.Request, header: object) -> None:
        response = SetBool.Response()
        if request.data and not self._active():
            response.message = "the node is not active"
        else:
            # Humble's header has no timestamps.
            age_s = age_of(getattr(header, "source_timestamp", 0))
            ignored = self.permission.set_enabled(request.data, time.monotonic(), age_s)
            self._changed()
            response.success = not ignored
            response.message = ignored or (self._enabled() if request.data else "disabled, held")
        self._service.send_response(response, header)

    def _enabled(self) -> str:
        """Return what a call that enables has done, for people."""
        hold = self.permission.holding(time.monotonic(), OTHERS)
        if hold is None:
            return "enabled"
        return f"enabled, and still held: {hold.value}: {self.permission.holds.text(hold)}"

    def _on_give_back(self, request: Trigger.Request, header: object) -> None:
        age_s = age_of(getattr(header, "source_timestamp", 0))
        ignored = self.permission.takeover.give_back(age_s, time.monotonic())
        self._changed()
        if not ignored:
            self._node.get_logger().info(f"takeover: {POLICY_HAS_IT}")
        response = Trigger.Response(success=not ignored, message=ignored or POLICY_HAS_IT)
        self._give_back.send_response(response, header)

    def _on_signal(self, message: Bool, info: Mapping[str, int]) -> None:
        self._take_over(SIGNAL, bool(message.data), message, info)

    def _on_joy(self, message: Joy, info: Mapping[str, int]) -> None:
        button = -1 if self._signal is None else self._signal[0]
        if not 0 <= button < len(message.buttons):
            count = len(message.buttons)
            self._log.warning(JOY, f"ignored: joy: {count} buttons, must have takeover.button {button}")
            return
        self._take_over(JOY, bool(message.buttons[button]), message, info)

    def _take_over(self, topic: str, value: bool, message: object, info: Mapping[str, int]) -> None:
        if self._signal is None:
            return
        waited_s, now_s = age_of(info.get("received_timestamp", 0)), time.monotonic()
        age_s = message_age(self._node, message, info)
        self._signal[2].read_publishers(now_s - max(0.0, waited_s))
        takeover = self.permission.takeover
        before = takeover.person
        ignored = takeover.signal(value, age_s, now_s, waited_s)
        if ignored:
            self._log.warning(topic, f"ignored: {ignored}")
        if takeover.person != before:
            now = POLICY_HAS_IT if before else "a person drives"
            self._node.get_logger().info(f"takeover: {now}")
            self._changed()


def age_of(stamp_ns: int) -> float:
    """Return the age of a timestamp by the system's clock, s; 0 without a timestamp."""
    return (time.time_ns() - stamp_ns) / NANOSECONDS if stamp_ns else 0.0


def message_age(node: LifecycleNode, message: Any, info: Mapping[str, int]) -> float:
    """Return the age of a message, s: by its source timestamp or its header, whichever is further from now.

    A bag that is played back has old headers.
    """
    age_s = age_of(info.get("source_timestamp", 0) or info.get("received_timestamp", 0))
    header = getattr(message, "header", None)
    sent_ns = 0 if header is None else stamp_ns(header.stamp)
    if not sent_ns:
        return age_s
    by_header_s = 1e-9 * (node.get_clock().now().nanoseconds - sent_ns)
    return max(age_s, by_header_s, key=abs)


def press_of(value: bool, info: Mapping[str, int]) -> Press:
    """Return a message on `enable` with its age.

    Args:
        value: of the message.
        info: rclpy's: timestamps in ns by the system's clock, 0 for none, and the publisher's count.
    """
    source_ns, received_ns = info.get("source_timestamp", 0), info.get("received_timestamp", 0)
    return Press(
        value,
        source_ns / NANOSECONDS if source_ns else None,
        age_of(source_ns or received_ns),
        sequence_of(info),
        age_of(received_ns),
    )

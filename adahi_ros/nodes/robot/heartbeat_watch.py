# SPDX-License-Identifier: Apache-2.0
"""Heartbeats of the policy runner, on the topic `run_policy_heartbeat`, as they are received."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Empty

from adahi_ros.nodes.common.executors import with_info
from adahi_ros.nodes.common.timers import steady_timer
from adahi_ros.nodes.robot.operator import PublisherWatch, age_of
from adahi_ros.safety.permission import Heartbeat
from adahi_ros.safety.sole_publisher import SolePublisher

TOPIC = "run_policy_heartbeat"
PERIOD_S = 0.1
# Best effort: DDS must not send old heartbeats again after an outage. A lifespan would compare two clocks.
QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


class HeartbeatWatch:
    """Receives heartbeats of one publisher, and reports when they stop.

    Args:
        node: the policy's.
        timeout_s: see `Heartbeat`.
        silent: called with a text for people when heartbeats stop.
        opened: closes it.
    """

    def __init__(
        self, node: Node, timeout_s: float, silent: Callable[[str], None], opened: ExitStack
    ) -> None:
        self._heartbeat = Heartbeat(timeout_s)
        self._silent = silent
        subscription = node.create_subscription(Empty, TOPIC, with_info(self._received), QOS)
        opened.callback(node.destroy_subscription, subscription)
        self._watch = PublisherWatch(node, subscription, "std_msgs/msg/Empty", SolePublisher())
        opened.callback(self.close)
        self._closed = False
        self._runner: bytes | None = None  # the only publisher of a heartbeat since the node acts
        self._timer = steady_timer(node, PERIOD_S, self._check_silence, opened)
        self._timer.cancel()  # saves the wake-ups without a policy runner

    def close(self) -> None:
        """Look no more who publishes; the subscription may be destroyed."""
        self._closed = True
        self._watch.close()

    def begin(self, since_s: float) -> None:
        """The node acts from now on; its activation began at that time."""
        self._heartbeat.begin(since_s, time.monotonic())

    def end(self) -> None:
        """The node does not act any longer."""
        self._runner = None
        self._heartbeat.end(time.monotonic())
        self._timer.cancel()

    def _received(self, message: Empty, information: Mapping[str, int]) -> None:
        if self._closed:  # the events executor queued it before its subscription was destroyed
            return
        if self._timer.is_canceled():
            self._timer.reset()
        now_s, waited_s = time.monotonic(), age_of(information["received_timestamp"])
        sender = self._watch.knows(now_s - max(0.0, waited_s))
        # One before the activation may be late, of a former runner.
        self._runner = self._runner or (sender if self._heartbeat.judges else None)
        if self._runner in (None, sender):  # a killed runner is listed for 20 s beside the next one
            self._heartbeat.received(waited_s, now_s)

    def _check_silence(self) -> None:
        silence_s = self._heartbeat.silence_s(time.monotonic(), PERIOD_S)
        if silence_s is not None:
            several = self._watch.publishers.several
            beside = f"; {several} publishers of {TOPIC}, must be one" if several else ""
            self._silent(f"no heartbeat of the policy runner for {silence_s:.1f} s{beside}")

# SPDX-License-Identifier: Apache-2.0
"""The deadman of an operator at a terminal: the arm may move from its start until Ctrl-C.

Publishes `true` on `enable` (std_msgs/Bool) ten times per second. Where `safety_state`
(adahi_msgs/SafetyState) asks for a fresh press at its start, it calls `draft_policy/set_enabled`
(std_srvs/SetBool) once.
"""

from __future__ import annotations

import math
import os
import select
import sys
import time
from typing import Any

from adahi_msgs.msg import SafetyState
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.task import Future
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from adahi_ros.contract.published import instead
from adahi_ros.nodes.common.graph import endpoints
from adahi_ros.nodes.common.qos import LISTENING
from adahi_ros.nodes.common.spin import run
from adahi_ros.nodes.common.timers import steady_timer

BOOL = "std_msgs/msg/Bool"
STDIN = 0
PERIOD_S, SAY_S = 0.1, 3.0  # of the messages; between reports that it waits
LONGEST_S = 0.5  # a process that stood still for longer was silent, and its next `true` may be a press
STATE_S = 1.5  # an active robot has published its state within


class Deadman(Node):
    """Presses the deadman while it lives; a press that is needed later takes another start."""

    def __init__(self, **options: Any) -> None:
        super().__init__("deadman", **options)
        self._out = self.create_publisher(Bool, "enable", QoSProfile(depth=1))
        self._client = self.create_client(SetBool, "draft_policy/set_enabled")
        self._found_s = self._said_s = 0.0
        self._pressed, self._needs = False, False
        self._ran_s = self._warns_s = math.inf
        self.late_s = 0.0
        """For how long it stood still; then it presses no more."""
        self.create_subscription(SafetyState, "safety_state", self._on_state, LISTENING)
        steady_timer(self, PERIOD_S, self._publish)

    def _publish(self) -> None:
        now_s, topic = self._now_s(), self._out.topic_name
        if self.late_s:
            return
        if self._pressed:
            self._out.publish(Bool(data=True))
        elif self._out.get_subscription_count() and self._client.service_is_ready():
            self._found_s = self._found_s or now_s
            if now_s > self._found_s + STATE_S:
                self._press(afresh=False)
                self._warns_s = now_s
        elif now_s > self._said_s + SAY_S:
            self._said_s = now_s
            there = instead(topic, BOOL, endpoints(self, [BOOL], subscriptions=True))
            other = f"; there is {there}; give --namespace" if there else ""
            self.get_logger().warning(f"waits: no robot subscribes to {topic}{other}")

    def _now_s(self) -> float:
        """Return the time, and note whether the process stood still, also with its machine."""
        now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        if now_s > self._ran_s + (LONGEST_S if self._found_s else SAY_S):
            self.late_s = self.late_s or now_s - self._ran_s
        self._ran_s = now_s
        return now_s

    def _on_state(self, state: SafetyState) -> None:
        now_s, needs = self._now_s(), bool(state.needs_press or state.stopped)
        if self._found_s and not (self._pressed or self.late_s):
            self._press(afresh=needs)
            self._warns_s = now_s + STATE_S  # the answer to that press is in a later state
        elif self._pressed and now_s > self._warns_s:
            if needs and not self._needs:
                text = f"held: {state.message}; to press afresh, end this and start it again"
                self.get_logger().warning(text)
            self._needs = needs

    def _press(self, afresh: bool) -> None:
        """Press now or never: a stop that comes later is not this start's to end."""
        self._pressed = True
        self.get_logger().info(f"pressed: {self._out.topic_name}; the arm may move; Ctrl-C releases it")
        self._out.publish(Bool(data=True))
        if afresh:
            self._client.call_async(SetBool.Request(data=True)).add_done_callback(self._on_answer)

    def _on_answer(self, called: Future) -> None:
        self.get_logger().info(f"fresh press: {called.result().message}")


def until_released(node: Deadman) -> Future:
    """Return what is done once the input has ended, as of a closed terminal, or the process stood still."""
    gone = Future()

    def read_input() -> None:
        if gone.done():
            return
        if node.late_s:
            node.get_logger().warning(f"released: it stood still for {node.late_s:.1f} s; start it again")
            gone.set_result(None)
        elif sys.stdin is None or (select.select([STDIN], [], [], 0.0)[0] and not os.read(STDIN, 1024)):
            node.get_logger().warning("released: its input has ended; run it at a terminal")
            gone.set_result(None)

    steady_timer(node, PERIOD_S, read_input)
    return gone


def main() -> None:
    """Run the node as a process."""
    sys.exit(run(Deadman, __doc__ or "", None, until_released))


if __name__ == "__main__":
    main()

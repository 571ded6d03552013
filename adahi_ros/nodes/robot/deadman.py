# SPDX-License-Identifier: Apache-2.0
"""The deadman of an operator at a terminal: the arm may move from its start until Ctrl-C.

Publishes `true` on `enable` (std_msgs/Bool) ten times per second. Where `safety_state`
(adahi_msgs/SafetyState) asks for a fresh press at its start, it calls `draft_policy/set_enabled`
(std_srvs/SetBool) once.
"""

from __future__ import annotations

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
PERIOD_S, SAY_S = 0.1, 3.0  # of the messages; between reports that it waits
KNOWN_S = 0.5  # from the first message on: then the robot has the deadman's


class Deadman(Node):
    """Presses the deadman while it lives; a press that is needed later takes another start."""

    def __init__(self, **options: Any) -> None:
        super().__init__("deadman", **options)
        self._out = self.create_publisher(Bool, "enable", QoSProfile(depth=10))
        self._client = self.create_client(SetBool, "draft_policy/set_enabled")
        self._asked: SafetyState | None = None  # what the robot needed before it was pressed
        self._pressed_s = self._said_s = 0.0
        self.create_subscription(SafetyState, "safety_state", self._on_state, LISTENING)
        steady_timer(self, PERIOD_S, self._publish)

    def _publish(self) -> None:
        now_s, topic = time.monotonic(), self._out.topic_name
        found = self._out.get_subscription_count() > 0
        if self._pressed_s:
            self._out.publish(Bool(data=True))
        elif found and self._asked is not None:
            self._pressed_s = now_s
            self.get_logger().info(f"pressed: {topic}; the arm may move; Ctrl-C releases it")
        elif now_s > self._said_s + SAY_S:
            self._said_s = now_s
            there = "" if found else instead(topic, BOOL, endpoints(self, [BOOL], subscriptions=True))
            other = f"; there is {there}; give --namespace" if there else ""
            self.get_logger().warning(f"waits: no robot subscribes to {topic}{other}")

    def _on_state(self, state: SafetyState) -> None:
        if not self._pressed_s:
            self._asked = state
        elif self._asked is not None and time.monotonic() > self._pressed_s + KNOWN_S:
            before, self._asked = self._asked, None
            stopped_since = state.stopped and not before.stopped  # by somebody: not to be undone
            if (
                (before.needs_press or before.stopped)
                and not stopped_since
                and self._client.service_is_ready()
            ):
                self._client.call_async(SetBool.Request(data=True)).add_done_callback(self._on_answer)

    def _on_answer(self, called: Future) -> None:
        self.get_logger().info(f"fresh press: {called.result().message}")


def main() -> None:
    """Run the node as a process."""
    sys.exit(run(Deadman, __doc__ or "", None))


if __name__ == "__main__":
    main()

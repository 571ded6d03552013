"""The two ends of a deadman across a link: one presses `enable`, the other says when it may move."""

from __future__ import annotations

import sys
import time

import rclpy
from rclpy.lifecycle import LifecycleNode
from std_msgs.msg import Bool

from adahi_ros.nodes.robot.operator import Operator

TIMEOUT_S = 0.3
PERIOD_S = 0.05


def press(node: LifecycleNode, for_s: float) -> None:
    """Release once, press for so long after the robot is there, and say when the deadman was let go."""
    enable = node.create_publisher(Bool, "enable", 100)
    while enable.get_subscription_count() == 0:
        rclpy.spin_once(node, timeout_sec=PERIOD_S)
    started_s = time.monotonic()
    while time.monotonic() < started_s + 1.0 + for_s:
        enable.publish(Bool(data=time.monotonic() > started_s + 1.0))
        rclpy.spin_once(node, timeout_sec=PERIOD_S)
    print(f"let go {time.monotonic()}", flush=True)
    while True:
        rclpy.spin_once(node)


def watch(node: LifecycleNode) -> None:
    """Say at every change whether the robot may move."""
    operator = Operator(node, lambda: True, lambda: None)
    operator.permission.configure(True, TIMEOUT_S)
    before = None
    while True:
        rclpy.spin_once(node, timeout_sec=0.01)
        now_s = time.monotonic()
        enabled = operator.permission.enabled(now_s)
        if enabled != before:
            print(f"{'enabled' if enabled else 'held'} {now_s}", flush=True)
            before = enabled


def main() -> None:
    rclpy.init()
    node = LifecycleNode(f"deadman_{sys.argv[1]}")
    if sys.argv[1] == "press":
        press(node, float(sys.argv[2]))
    else:
        watch(node)


if __name__ == "__main__":
    main()

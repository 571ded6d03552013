"""The two ends of a deadman across a link: one presses `enable`, the other says when it may move."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import rclpy
from rclpy.lifecycle import LifecycleNode
from std_msgs.msg import Bool

from adahi_ros.nodes.robot.operator import OperatorInputs

TIMEOUT_S = 0.3
PERIOD_S = 0.05
RETRY_S, RELEASED_S = 4.0, 1.0


def press(node: LifecycleNode, for_s: float, watches: Path) -> None:
    """Press again and again until the robot may move, keep pressed for so long, and say when it was let go.

    Before, the robot must know this publisher: of a stop that it cannot ascribe, no press is an end. A link
    with losses delays reliable messages by seconds, so a first press can be too old.
    """
    enable = node.create_publisher(Bool, "enable", 100)
    while not said(watches, "knows"):
        rclpy.spin_once(node, timeout_sec=PERIOD_S)
    while not said(watches, "enabled"):
        enable.publish(Bool(data=time.monotonic() % RETRY_S > RELEASED_S))
        rclpy.spin_once(node, timeout_sec=PERIOD_S)
    let_go_s = time.monotonic() + for_s
    while time.monotonic() < let_go_s:
        enable.publish(Bool(data=True))
        rclpy.spin_once(node, timeout_sec=PERIOD_S)
    print(f"let go {time.monotonic()}", flush=True)
    while True:
        rclpy.spin_once(node)


def said(log: Path, word: str) -> bool:
    return any(line.startswith(f"{word} ") for line in log.read_text().splitlines())


def watch(node: LifecycleNode) -> None:
    """Say when the publisher is known, and at every change whether the robot may move."""
    operator = OperatorInputs(node, lambda: True, lambda: None)
    operator.permission.configure(True, TIMEOUT_S)
    before, knows = None, False
    while True:
        rclpy.spin_once(node, timeout_sec=0.01)
        now_s = time.monotonic()
        if not knows and operator.permission.publishers.gid is not None:
            knows = True
            print(f"knows {now_s}", flush=True)
        enabled = operator.permission.enabled(now_s)
        if enabled != before:
            print(f"{'enabled' if enabled else 'held'} {now_s}", flush=True)
            before = enabled


def main() -> None:
    rclpy.init()
    node = LifecycleNode(f"deadman_{sys.argv[1]}")
    if sys.argv[1] == "press":
        press(node, float(sys.argv[2]), Path(sys.argv[3]))
    else:
        watch(node)


if __name__ == "__main__":
    main()

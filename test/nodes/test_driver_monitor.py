"""The driver's state over DDS."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Int32

from adahi_ros.contract.monitors import Monitor
from adahi_ros.lab.nodes.observer import Observer
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.robot.driver_monitor import DriverMonitor

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def test_anything_but_running_is_reported_and_so_is_running_again(observer: Observer) -> None:
    calls: list[str] = []
    mode = Monitor("robot_mode", "std_msgs/msg/Int32", "data", (7,), latched=True)
    level = Monitor("health", "diagnostic_msgs/msg/DiagnosticArray", "status.0.level", (0,))
    modes = observer.node.create_publisher(Int32, "robot_mode", LATCHED)
    healths = observer.node.create_publisher(DiagnosticArray, "health", 10)
    modes.publish(Int32(data=7))  # before anyone subscribes
    with ExitStack() as opened:
        DriverMonitor(observer.node, [mode, level], calls.append, lambda: calls.append("running"), opened)
        assert calls == ["driver robot_mode data: no message yet, must be 7"]
        observer.wait_until(lambda: calls[-1].startswith("driver health"), 20.0, "the latched mode")
        assert calls[-1] == "driver health status.0.level: no message yet, must be 0"

        def health(*levels: bytes) -> None:
            healths.publish(DiagnosticArray(status=[DiagnosticStatus(level=each) for each in levels]))

        observer.wait_until(lambda: calls[-1] == "running", 20.0, "running", lambda: health(b"\0"))
        modes.publish(Int32(data=3))
        observer.wait_until(
            lambda: calls[-1] == "driver robot_mode data: 3, must be 7", 20.0, "a protective stop"
        )
        modes.publish(Int32(data=7))
        observer.wait_until(lambda: calls[-1] == "running", 20.0, "running again")
        health()
        observer.wait_until(lambda: "no such integer" in calls[-1], 20.0, "a message without that entry")


def test_a_message_type_that_is_not_installed_is_named(observer: Observer) -> None:
    missing = Monitor("mode", "nowhere_msgs/msg/Mode", "mode", (7,))
    called: list[Any] = []
    with ExitStack() as opened, pytest.raises(ParameterError, match="is nowhere_msgs installed and sourced"):
        DriverMonitor(observer.node, [missing], called.append, lambda: None, opened)
    assert called == []

"""The driver's state over DDS."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from functools import partial

import pytest

pytest.importorskip("rclpy")

from controller_manager_msgs.msg import ControllerManagerActivity, NamedLifecycleState
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import State
from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import Int32

from adahi_lab.nodes.observer import Observer
from adahi_ros.contract.monitors import Monitor
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.robot.driver_monitor import ACTIVITY, DriverMonitor

DEADLINE_S = 20.0


class Offered(Enum):
    """Reliability of a driver's publisher."""

    RELIABLE = ReliabilityPolicy.RELIABLE
    BEST_EFFORT = ReliabilityPolicy.BEST_EFFORT


@contextmanager
def monitored(observer: Observer, monitors: list[Monitor], calls: list[str]) -> Iterator[None]:
    """Watch a driver, and append what is said of it."""

    def say(fault: str, known: bool) -> None:
        calls.append((fault if known else f"unknown: {fault}") or "running")

    monitor = DriverMonitor(observer.node, monitors, say)
    try:
        yield
    finally:
        monitor.close()


LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def test_anything_but_running_is_reported_and_so_is_running_again(observer: Observer) -> None:
    calls: list[str] = []
    mode = Monitor("robot_mode", "std_msgs/msg/Int32", "data", (7,), latched=True)
    level = Monitor("health", "diagnostic_msgs/msg/DiagnosticArray", "status.0.level", (0,))
    modes = observer.node.create_publisher(Int32, "robot_mode", LATCHED)
    healths = observer.node.create_publisher(DiagnosticArray, "health", 10)
    modes.publish(Int32(data=7))  # before anyone subscribes
    with monitored(observer, [mode, level], calls):
        assert calls == ["unknown: driver robot_mode data: no message yet, must be 7"]
        observer.wait_until(lambda: calls[-1].startswith("unknown: driver health"), 20.0, "the latched mode")
        assert calls[-1] == "unknown: driver health status.0.level: no message yet, must be 0"

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
        observer.wait_until(lambda: "not in the message" in calls[-1], 20.0, "a message without that entry")


def test_an_entry_of_an_array_is_found_by_its_name(observer: Observer) -> None:
    """As controller_manager lists its controllers: in any order, and a name may be missing or twice."""
    calls: list[str] = []
    arm = Monitor("activity", "diagnostic_msgs/msg/DiagnosticArray", "status.arm.message", ("active",))
    activity = observer.node.create_publisher(DiagnosticArray, "activity", 10)

    def publish(*named: tuple[str, str]) -> None:
        status = [DiagnosticStatus(name=name, message=message) for name, message in named]
        activity.publish(DiagnosticArray(status=status))

    with monitored(observer, [arm], calls):
        for what, others in (
            ("running", [("hand", "inactive"), ("arm", "active")]),
            ("'inactive', must be 'active'", [("arm", "inactive"), ("hand", "active")]),
            ("running", [("arm", "active")]),
            ("not in the message", [("hand", "active")]),
            ("running", [("arm", "active")]),
            ("not in the message", [("arm", "active"), ("arm", "active")]),
        ):
            said = partial(lambda words: words in calls[-1], what)
            observer.wait_until(said, DEADLINE_S, what, partial(publish, *others))


def test_a_controller_that_is_off_is_named_with_its_namespace(observer: Observer) -> None:
    """Two arms may have controllers with equal names."""
    off: list[str] = []
    topic, field = "right/controller_manager/activity", "controllers.arm_controller.state.label"
    arm = Monitor(topic, ACTIVITY, field, ("active",), latched=True)
    monitor = DriverMonitor(observer.node, [arm], lambda fault, known: None, off.append)
    state = NamedLifecycleState(name="arm_controller", state=State(label="inactive"))
    manager = observer.node.create_publisher(ControllerManagerActivity, topic, LATCHED)
    manager.publish(ControllerManagerActivity(controllers=[state]))
    observer.wait_until(lambda: bool(off), DEADLINE_S, "a controller that is off")
    assert set(off) == {"/right/arm_controller"}
    monitor.close()


def test_a_latched_driver_that_was_replaced_runs_once_the_old_one_is_gone(observer: Observer) -> None:
    calls: list[str] = []
    mode = Monitor("robot_mode", "std_msgs/msg/Int32", "data", (7,), latched=True)
    old = observer.node.create_publisher(Int32, "robot_mode", LATCHED)
    old.publish(Int32(data=7))
    with monitored(observer, [mode], calls):
        observer.wait_until(lambda: calls[-1] == "running", 20.0, "running")
        new = observer.node.create_publisher(Int32, "robot_mode", LATCHED)
        new.publish(Int32(data=7))
        observer.wait_until(lambda: "of 2 publishers (/watcher, /watcher)" in calls[-1], 20.0, "both")
        observer.node.destroy_publisher(old)
        observer.wait_until(lambda: calls[-1] == "running", 20.0, "what the new one has latched")
    assert "its publisher is gone" in calls[-2]


def test_a_latched_driver_that_ended_before_anyone_looked_does_not_run(observer: Observer) -> None:
    calls: list[str] = []
    mode = Monitor("robot_mode", "std_msgs/msg/Int32", "data", (7,), latched=True)
    with monitored(observer, [mode], calls):
        driver = observer.node.create_publisher(Int32, "robot_mode", LATCHED)
        end_s = time.monotonic() + DEADLINE_S
        while not driver.get_subscription_count():  # does not spin: the node is busy
            assert time.monotonic() < end_s
        driver.publish(Int32(data=7))
        assert driver.wait_for_all_acked(Duration(seconds=DEADLINE_S))
        observer.node.destroy_publisher(driver)
        looks: list[Int32] = []
        look = observer.node.create_publisher(Int32, "look", 1)  # so that time passes by events
        observer.node.create_subscription(Int32, "look", looks.append, 10)
        observer.wait_until(lambda: len(looks) > 20, DEADLINE_S, "looks", lambda: look.publish(Int32()))
    assert set(calls) == {"unknown: driver robot_mode data: no message yet, must be 7"}


def test_no_report_of_a_driver_is_displaced_while_the_node_is_busy(observer: Observer) -> None:
    calls: list[str] = []
    with monitored(observer, [Monitor("mode", "std_msgs/msg/Int32", "data", (7,))], calls):
        modes = observer.node.create_publisher(Int32, "mode", 100)
        observer.wait_until(
            lambda: calls[-1] == "running", DEADLINE_S, "running", lambda: modes.publish(Int32(data=7))
        )
        for mode in (3, *[7] * 30):
            modes.publish(Int32(data=mode))
        assert modes.wait_for_all_acked(Duration(seconds=DEADLINE_S))
        observer.wait_until(lambda: "driver mode data: 3, must be 7" in calls, DEADLINE_S, "the stop")


def test_a_message_type_that_is_not_installed_is_named(observer: Observer) -> None:
    missing = Monitor("mode", "nowhere_msgs/msg/Mode", "mode", (7,))
    calls: list[str] = []
    with (
        pytest.raises(ParameterError, match="is nowhere_msgs installed and sourced"),
        monitored(observer, [missing], calls),
    ):
        pass
    assert calls == []


@pytest.mark.parametrize("reliability", list(Offered))
def test_a_driver_whose_publisher_ends_does_not_run(observer: Observer, reliability: Offered) -> None:
    calls: list[str] = []
    qos = QoSProfile(depth=1, reliability=reliability.value)
    with monitored(observer, [Monitor("mode", "std_msgs/msg/Int32", "data", (7,), timeout_s=0.0)], calls):
        modes = observer.node.create_publisher(Int32, "mode", qos)
        observer.wait_until(
            lambda: calls[-1] == "running", 20.0, "running", lambda: modes.publish(Int32(data=7))
        )
        observer.node.destroy_publisher(modes)
        observer.wait_until(lambda: "its publisher is gone" in calls[-1], 20.0, "a driver that ended")


def test_a_driver_that_falls_silent_does_not_run(observer: Observer) -> None:
    calls: list[str] = []
    modes = observer.node.create_publisher(Int32, "mode", 1)
    with monitored(observer, [Monitor("mode", "std_msgs/msg/Int32", "data", (7,))], calls):
        observer.wait_until(
            lambda: calls[-1] == "running", 20.0, "running", lambda: modes.publish(Int32(data=7))
        )
        observer.wait_until(lambda: "no message for more than 1 s" in calls[-1], 20.0, "a silent driver")

"""Callbacks work the same with rclpy's events executor and where there is none."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from rclpy.executors import Executor, SingleThreadedExecutor
from std_msgs.msg import Bool, Int32
from std_srvs.srv import Trigger

from adahi_lab.nodes.observer import Observer
from adahi_ros.contract.monitors import Monitor
from adahi_ros.nodes.common.deferred_service import DeferredService
from adahi_ros.nodes.common.executors import executor_of, with_info
from adahi_ros.nodes.common.timers import DueTimer, steady_timer
from adahi_ros.nodes.robot.driver_monitor import DriverMonitor

SPINS = 200
SPIN_S = 0.05
PERIOD_S = 0.02
LONG_S = 0.03  # of a callback that the timer's next period overtakes


class Stage:
    """A node and its executor."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.executor: Executor = executor_of(node)

    def spin_until(self, done: Callable[[], object]) -> None:
        for _ in range(SPINS):
            if done():
                return
            self.executor.spin_once(SPIN_S)
        raise TimeoutError


@pytest.fixture(params=["events", "single-threaded"])
def stage(
    observer: Observer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    if request.param == "single-threaded":
        monkeypatch.setitem(sys.modules, "rclpy.experimental.events_executor", None)  # as with Humble
    observer._executor.remove_node(observer.node)
    made = Stage(observer.node)
    assert isinstance(made.executor, SingleThreadedExecutor) == (request.param == "single-threaded")
    yield made
    made.executor.shutdown()


def test_a_callback_gets_a_message_and_its_information(stage: Stage) -> None:
    received: list[tuple[Bool, Mapping[str, int]]] = []
    callback = with_info(lambda message, information: received.append((message, information)))
    stage.node.create_subscription(Bool, "pressed", callback, 10)
    publisher = stage.node.create_publisher(Bool, "pressed", 10)
    stage.spin_until(lambda: publisher.get_subscription_count() > 0)
    publisher.publish(Bool(data=True))
    stage.spin_until(lambda: bool(received))
    message, information = received[0]
    assert message.data
    assert information["source_timestamp"] > 0


def test_a_reply_can_be_sent_long_after_its_request(stage: Stage) -> None:
    waiting: list[tuple[Any, Any]] = []
    service = DeferredService(
        stage.node, Trigger, "later", lambda request, header: waiting.append((request, header))
    )
    client = stage.node.create_client(Trigger, "later")
    stage.spin_until(client.service_is_ready)
    first, second = (client.call_async(Trigger.Request()) for _ in range(2))
    stage.spin_until(lambda: len(waiting) == 2)
    assert not first.done()
    for place, message in ((1, "second"), (0, "first")):
        service.send_response(Trigger.Response(message=message), waiting[place][1])
    stage.spin_until(lambda: first.done() and second.done())
    assert (first.result().message, second.result().message) == ("first", "second")
    service.destroy()


def test_a_due_timer_calls_once_for_every_time_that_is_set(stage: Stage) -> None:
    calls: list[int] = []

    def call() -> None:
        calls.append(1)
        timer.set(0.0 if len(calls) < 3 else float("inf"))

    timer = DueTimer(stage.node, call)
    timer.set(0.0)
    stage.spin_until(lambda: len(calls) == 3)
    for _ in range(3):
        stage.executor.spin_once(SPIN_S)
    assert len(calls) == 3
    timer.destroy()


def end_before(stage: Stage, event: Callable[[], object] | None, end: Callable[[], None]) -> None:
    """End something in a callback behind which the events executor has queued an event of it.

    Args:
        stage: spins.
        event: makes the event; None for a timer, which is due.
        end: ends what gets it.
    """
    ended: list[int] = []

    def last() -> None:
        end()
        ended.append(1)

    def overrun() -> None:
        if event is not None:
            stage.executor.create_task(last)
            event()
        time.sleep(LONG_S)  # a callback that works for long: meanwhile the timer is due, or the event arrives
        if event is None:
            stage.executor.create_task(last)

    stage.executor.create_task(overrun)
    stage.spin_until(lambda: bool(ended))
    for _ in range(3):
        stage.executor.spin_once(0.01)


def test_a_timer_that_was_destroyed_calls_no_more(stage: Stage) -> None:
    for _ in range(10):
        calls: list[str] = []
        opened = ExitStack()
        steady_timer(stage.node, PERIOD_S, partial(calls.append, "called"), opened)
        stage.spin_until(partial(len, calls))

        def end(calls: list[str] = calls, opened: ExitStack = opened) -> None:
            opened.close()
            calls.clear()

        end_before(stage, None, end)
        assert calls == []


def test_a_drivers_state_that_comes_as_its_monitor_is_closed_is_ignored(stage: Stage) -> None:
    mode = Monitor("robot_mode", "std_msgs/msg/Int32", "data", (7,))
    modes = stage.node.create_publisher(Int32, "robot_mode", 10)
    for _ in range(3):
        said: list[str] = []

        def say(fault: str, known: bool, said: list[str] = said) -> None:
            said.append(fault)

        monitor = DriverMonitor(stage.node, [mode], say)
        stage.spin_until(lambda: modes.get_subscription_count() == 2)  # reliable, and best effort

        def end(said: list[str] = said, monitor: DriverMonitor = monitor) -> None:
            monitor.close()
            said.clear()

        end_before(stage, lambda: modes.publish(Int32(data=7)), end)
        assert said == []

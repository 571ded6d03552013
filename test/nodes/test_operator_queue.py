"""What the operator says while the node is busy is received afterwards, all of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from adahi_lab.nodes.observer import Observer
from adahi_ros.nodes.common.graph import publishers_of
from adahi_ros.nodes.robot.operator import BOOL, OperatorInputs
from test.nodes.conftest import destroy

FLOOD = 1000  # messages that wait
CALLS = 30
DEADLINE_S = 20.0


@pytest.fixture
def arm(observer: Observer) -> Iterator[tuple[OperatorInputs, Callable[[], None]]]:
    """The operator's inputs of a node, and a function with which the node receives what waits."""
    node = LifecycleNode("arm", context=observer.context, use_global_arguments=False)
    operator = OperatorInputs(node, lambda: True, lambda: None)
    executor = SingleThreadedExecutor(context=observer.context)
    executor.add_node(node)
    yield operator, lambda: executor.spin_once(timeout_sec=0.0)
    executor.shutdown()
    operator.close()
    destroy(node)


@pytest.mark.parametrize("topic", ["enable", "takeover"])
def test_a_flood_of_another_publisher_displaces_nothing_that_holds(
    observer: Observer, arm: tuple[OperatorInputs, Callable[[], None]], topic: str
) -> None:
    operator, receive = arm
    operator.watch_takeover(-1)
    holds = topic == "takeover"  # a true takes over, a false stops
    one = observer.node.create_publisher(Bool, topic, 10)
    flood = observer.node.create_publisher(Bool, topic, FLOOD)
    for publisher in (one, flood):
        observer.wait_until(lambda: publisher.get_subscription_count() == 2, DEADLINE_S, "the node")  # noqa: B023
    one.publish(Bool(data=holds))
    for _ in range(FLOOD):
        flood.publish(Bool(data=not holds))
    assert flood.wait_for_all_acked(Duration(seconds=DEADLINE_S))
    permission = operator.permission
    held = {"enable": lambda: permission.stopped, "takeover": lambda: permission.takeover.person}
    observer.wait_until(held[topic], DEADLINE_S, "the hold", receive)


def test_a_call_that_stops_is_not_displaced_by_later_calls(
    observer: Observer, arm: tuple[OperatorInputs, Callable[[], None]]
) -> None:
    _, receive = arm
    one, other = (observer.node.create_client(SetBool, "arm/set_enabled") for _ in range(2))
    for client in (one, other):
        observer.wait_until(client.service_is_ready, DEADLINE_S, "the service")
    stopped = one.call_async(SetBool.Request(data=False))
    for _ in range(CALLS):
        other.call_async(SetBool.Request(data=True))
    observer.wait_until(stopped.done, DEADLINE_S, "the reply", receive)
    assert stopped.result().message == "disabled, held"


def test_a_press_ends_a_stop_of_which_the_unreliable_copy_came_first(
    observer: Observer, arm: tuple[OperatorInputs, Callable[[], None]]
) -> None:
    operator, _ = arm
    deadman = observer.node.create_publisher(Bool, "enable", 10)
    observer.wait_until(lambda: deadman.get_subscription_count() == 2, DEADLINE_S, "the node")
    known = partial(publishers_of, operator._node, "/enable", BOOL)
    observer.wait_until(lambda: len(known()) == 1, DEADLINE_S, "the publisher")
    stop = {"source_timestamp": time.time_ns(), "publication_sequence_number": 1}
    operator._on_any_enable(Bool(data=False), stop)
    operator._on_enable(Bool(data=False), stop)
    assert operator.permission.stopped
    press = {"source_timestamp": time.time_ns(), "publication_sequence_number": 2}
    operator._on_enable(Bool(data=True), press)
    assert not operator.permission.stopped

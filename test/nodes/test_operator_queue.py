"""What the operator says while the node is busy is received afterwards, all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode
from std_msgs.msg import Bool

from adahi_ros.lab.nodes.observer import Observer
from adahi_ros.nodes.robot.operator import Operator
from test.nodes.conftest import destroy

FLOOD = 1000  # messages that wait
DEADLINE_S = 20.0


@pytest.fixture
def arm(observer: Observer) -> Iterator[tuple[Operator, Callable[[], None]]]:
    """The operator's inputs of a node, and a function with which the node receives what waits."""
    node = LifecycleNode("arm", context=observer.context, use_global_arguments=False)
    operator = Operator(node, lambda: True, lambda: None)
    executor = SingleThreadedExecutor(context=observer.context)
    executor.add_node(node)
    yield operator, lambda: executor.spin_once(timeout_sec=0.0)
    executor.shutdown()
    operator.close()
    destroy(node)


def test_a_false_is_not_displaced_by_the_presses_of_another_publisher(
    observer: Observer, arm: tuple[Operator, Callable[[], None]]
) -> None:
    operator, receive = arm
    supervisor = observer.node.create_publisher(Bool, "enable", 10)
    deadman = observer.node.create_publisher(Bool, "enable", FLOOD)
    for publisher in (supervisor, deadman):
        observer.wait_until(lambda: publisher.get_subscription_count() == 2, DEADLINE_S, "the node")  # noqa: B023
    supervisor.publish(Bool(data=False))
    for _ in range(FLOOD):
        deadman.publish(Bool(data=True))
    assert deadman.wait_for_all_acked(Duration(seconds=DEADLINE_S))
    observer.wait_until(lambda: operator.permission.stopped, DEADLINE_S, "the stop", receive)

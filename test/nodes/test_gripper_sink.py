"""Goals of a gripper end when the robot is held, when another goal replaces them, and when the node ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from threading import Thread
from typing import Any

import numpy as np
import pytest
from rclpy.action import ActionServer, CancelResponse, GoalResponse  # type: ignore[attr-defined]
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.task import Future

from adahi_lab.nodes.observer import Observer
from adahi_ros.contract.parsing import parse_contract
from adahi_ros.contract.sinks.gripper_command import GripperCommandSink
from adahi_ros.nodes.common.qos import message_type
from adahi_ros.nodes.robot import goal_sink
from adahi_ros.nodes.robot.goal_sink import GoalSink
from adahi_ros.safety.goals import CANCEL_QUICKLY
from test.nodes.conftest import destroy

GRIPPER = "control_msgs/action/GripperCommand"
DEADLINE_S = 30.0
OPEN, SHUT = np.array([0.04]), np.array([0.0])
CONTRACT = {
    "robot_type": "hand",
    "fps": 20,
    "observations": {
        "observation.state": {
            "channel": {"topic": "joint_states", "type": "sensor_msgs/msg/JointState"},
            "select": ["position.finger"],
        }
    },
    "actions": {"hand": {"channel": {"topic": "hand/goal", "type": GRIPPER}, "select": ["position.finger"]}},
}


class Driver:
    """Accepts goals and never ends them by itself.

    Args:
        context: of its node.
        refused: how many cancel requests it refuses.
        waits: it accepts a goal once `accept` was called.
    """

    def __init__(self, context: Any, refused: int, waits: bool) -> None:
        self.node = Node("driver", context=context, use_global_arguments=False)
        self.refused = refused
        self.requested = 0
        self.cancels = 0
        self.handles: list[Any] = []
        self._executor = SingleThreadedExecutor(context=context)
        self._may_accept = Future(executor=self._executor)
        if not waits:
            self._may_accept.set_result(True)
        self._server = ActionServer(
            self.node,
            message_type(GRIPPER),
            "hand/goal",
            callback_group=ReentrantCallbackGroup(),
            goal_callback=self._on_goal,
            execute_callback=lambda handle: None,
            handle_accepted_callback=self.handles.append,
            cancel_callback=self._on_cancel,
        )
        self._executor.add_node(self.node)
        self._thread = Thread(target=self._executor.spin, daemon=True)
        self._thread.start()

    def accept(self) -> None:
        self._may_accept.set_result(True)
        self._executor.wake()

    def close(self) -> None:
        self._executor.shutdown(timeout_sec=1.0)
        self._thread.join(DEADLINE_S)
        self._server.destroy()
        self.node.destroy_node()

    async def _on_goal(self, goal: Any) -> GoalResponse:
        self.requested += 1
        await self._may_accept
        return GoalResponse.ACCEPT

    def _on_cancel(self, handle: Any) -> CancelResponse:
        self.cancels += 1
        return CancelResponse.REJECT if self.cancels <= self.refused else CancelResponse.ACCEPT


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


class Hand:
    """A sink and its driver; `until` spins the sink's node."""

    def __init__(self, observer: Observer, opened: ExitStack, refused: int = 0, waits: bool = False) -> None:
        self.driver = Driver(observer.context, refused, waits)
        opened.callback(self.driver.close)
        node = LifecycleNode("robot", context=observer.context)
        opened.callback(destroy, node)
        self._executor = SingleThreadedExecutor(context=observer.context)
        self._executor.add_node(node)
        opened.callback(self._executor.shutdown, timeout_sec=1.0)
        opened.callback(self._executor.spin_once, timeout_sec=1.0)  # destroys the sink's client
        self.closing = opened.enter_context(ExitStack())
        (sink,) = parse_contract(CONTRACT).action.sinks
        self.sink = GoalSink(node, sink, GripperCommandSink(), self.closing)
        self._observer = observer

    def until(self, done: Callable[[], bool], step: Callable[[], None] = lambda: None) -> None:
        def stepped() -> bool:
            step()
            self._executor.spin_once(timeout_sec=0.01)
            return done()

        self._observer.wait_until(stepped, DEADLINE_S, "the driver")

    def goals(self, count: int, position: np.ndarray) -> None:
        self.until(lambda: len(self.driver.handles) >= count, lambda: self.sink.send(position, 0))


MakeHand = Callable[..., Hand]


@pytest.fixture
def make_hand(observer: Observer, opened: ExitStack) -> MakeHand:
    return lambda **named: Hand(observer, opened, **named)


def test_a_goal_that_another_has_replaced_is_cancelled(make_hand: MakeHand) -> None:
    hand = make_hand()
    hand.goals(1, OPEN)
    hand.goals(2, SHUT)
    old, new = hand.driver.handles
    hand.until(lambda: old.is_cancel_requested, lambda: hand.sink.send(SHUT, 0))
    assert not new.is_cancel_requested
    assert hand.sink.fault == ""
    hand.until(lambda: new.is_cancel_requested, hand.sink.hold)


def test_a_hold_cancels_every_goal_at_once(make_hand: MakeHand) -> None:
    hand = make_hand(refused=1)
    hand.goals(1, OPEN)
    hand.until(lambda: hand.driver.cancels == 1 and hand.sink.fault != "", hand.sink.hold)
    assert hand.sink.fault == "hand: hand/goal does not cancel a goal (1 requests)"
    hand.until(lambda: hand.driver.handles[0].is_cancel_requested, hand.sink.hold)
    hand.until(lambda: hand.sink.fault == "", hand.sink.hold)


def test_a_driver_that_refuses_to_cancel_is_asked_until_it_does(make_hand: MakeHand) -> None:
    hand = make_hand(refused=CANCEL_QUICKLY + 1)
    hand.goals(1, OPEN)
    message = f"({CANCEL_QUICKLY} requests)"
    hand.until(lambda: message in hand.sink.fault, hand.sink.hold)
    hand.until(lambda: hand.driver.handles[0].is_cancel_requested, hand.sink.hold)
    hand.until(lambda: hand.sink.fault == "", hand.sink.hold)


def test_a_goal_that_is_accepted_after_the_hold_is_cancelled(make_hand: MakeHand) -> None:
    hand = make_hand(waits=True)
    hand.until(lambda: hand.driver.requested > 0, lambda: hand.sink.send(OPEN, 0))
    hand.sink.hold()
    hand.driver.accept()
    hand.until(lambda: bool(hand.driver.handles) and hand.driver.handles[0].is_cancel_requested)


def test_a_goal_from_before_a_hold_is_cancelled_though_another_is_wanted(
    make_hand: MakeHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(goal_sink, "SUPERSEDED_S", DEADLINE_S)  # the driver would go on for this time
    hand = make_hand(waits=True)
    hand.until(lambda: hand.driver.requested > 0, lambda: hand.sink.send(OPEN, 0))
    hand.sink.hold()
    hand.sink.send(SHUT, 0)
    hand.driver.accept()
    hand.goals(2, SHUT)
    old, new = hand.driver.handles
    hand.until(lambda: old.is_cancel_requested)
    assert not new.is_cancel_requested


def test_a_goal_that_is_accepted_while_the_node_ends_is_cancelled(make_hand: MakeHand) -> None:
    hand = make_hand(waits=True)
    hand.until(lambda: hand.driver.requested > 0, lambda: hand.sink.send(OPEN, 0))
    hand.sink.hold()
    hand.driver.accept()  # its answer is read by nothing but the end
    hand.closing.close()
    assert [handle.is_cancel_requested for handle in hand.driver.handles] == [True]


def test_a_driver_without_an_answer_does_not_keep_the_node_from_its_end(make_hand: MakeHand) -> None:
    hand = make_hand(waits=True)
    hand.until(lambda: hand.driver.requested > 0, lambda: hand.sink.send(OPEN, 0))
    hand.closing.close()
    assert hand.driver.handles == []

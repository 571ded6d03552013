# SPDX-License-Identifier: Apache-2.0
"""Commands as goals of a ROS action, such as a gripper's."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np
from action_msgs.msg import GoalStatus
from action_msgs.srv import CancelGoal
from rclpy.action import ActionClient  # type: ignore[attr-defined]
from rclpy.action.client import ClientGoalHandle
from rclpy.context import Context
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode
from rclpy.task import Future
from rclpy.waitable import Waitable

from adahi_ros.contract.contract import Sink
from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.contract.sinks.interface import ActionSink
from adahi_ros.core.command_curve import Curve
from adahi_ros.nodes.common.qos import message_type
from adahi_ros.nodes.common.throttled_log import ThrottledLog
from adahi_ros.safety.goals import SUPERSEDED_S, Cancel, Goals

OVER = (GoalStatus.STATUS_SUCCEEDED, GoalStatus.STATUS_CANCELED, GoalStatus.STATUS_ABORTED)
MOST_GOALS = 16  # largest number without an answer, and of accepted ones that are not over
CLOSE_S = 1.0  # the longest wait for a driver's answers when the node ends
CLOSE_LOOK_S = 0.05


@dataclass
class _Accepted:
    """An accepted goal that is not known to be over."""

    handle: ClientGoalHandle
    cancel: Cancel = field(default_factory=Cancel)
    answer: Future | None = None  # future of the newest cancel request

    @property
    def over(self) -> bool:
        return self.cancel.confirmed or self.handle.status in OVER

    def cancel_if_due(self, now_s: float, ready: bool) -> None:
        """Read the answer to the cancel request; send another one if due and the server is ready."""
        if self.answer is not None and self.answer.done():
            self.cancel.answered(_cancels(self.answer.result(), self.handle), now_s)
            self.answer = None
        if ready and not self.over and self.cancel.sends_now(now_s):
            self.answer = self.handle.cancel_goal_async()


def _cancels(answer: CancelGoal.Response, handle: ClientGoalHandle) -> bool:
    """Return whether the answer says that the goal is being cancelled, or is over."""
    if answer.return_code != CancelGoal.Response.ERROR_NONE:
        return answer.return_code != CancelGoal.Response.ERROR_REJECTED
    return any(goal.goal_id == handle.goal_id for goal in answer.goals_canceling)


class GoalSink:
    """Sends a goal when the commanded position changes; cancels all goals when the robot is held.

    A gripper at its goal, or with an object in its grasp, does not move: its goal is over.

    Args:
        node: gets the client.
        sink: of the contract.
        goals: fills goals.
        opened: closes it.
    """

    holds_by_itself = True

    def __init__(self, node: LifecycleNode, sink: Sink, goals: ActionSink, opened: ExitStack) -> None:
        self._node = node
        self._log = ThrottledLog(node, period_s=5.0)
        self._sink = sink
        self._joint = sink.source.select[0].partition(".")[2]
        self._filled = goals
        self._type = message_type(goals.kind)
        self._goals = Goals()
        self._unanswered: dict[int, Future] = {}  # futures of goals without an answer, by number
        self._accepted: list[_Accepted] = []
        self._client = ActionClient(node, self._type, sink.channel.topic)
        opened.callback(self._close)

    @property
    def fault(self) -> str:
        failures = max((each.cancel.failures for each in self._accepted), default=0)
        if not failures:
            return ""
        return f"{self._sink.key}: {self._sink.channel.topic} does not cancel a goal ({failures} requests)"

    def send(self, command: np.ndarray, stamp_ns: int, curve: Curve | None = None) -> None:
        now_s = time.monotonic()
        self._read_answers(now_s)
        if not self._client.server_is_ready():
            self._warn("no server", f"no server of {self._sink.channel.topic} ({self._sink.channel.kind})")
            self._goals.lost()
            return
        self._send(self._goals.want(float(command[0]), now_s))

    def hold(self) -> None:
        now_s = time.monotonic()
        if not self._goals.held:
            self._goals.hold()
            self._cancel(now_s)
        self._read_answers(now_s)

    def _send(self, position: float | None) -> None:
        if position is None:
            return
        goal = self._type.Goal()
        self._filled.fill(goal, self._joint, position)
        future = self._unanswered[self._goals.newest] = self._client.send_goal_async(goal)
        future.add_done_callback(lambda _: self._read_answers(time.monotonic()))
        if len(self._unanswered) > MOST_GOALS:
            self._unanswered.pop(min(self._unanswered)).cancel()

    def _read_answers(self, now_s: float) -> None:
        """Read the answers of the driver, and send the cancel requests that are due."""
        for number, future in list(self._unanswered.items()):
            if future.done() and self._unanswered.pop(number, None) is not None:
                self._answered(number, future.result(), now_s)
        ready = bool(self._accepted) and self._client.server_is_ready()
        for each in self._accepted:
            each.cancel_if_due(now_s, ready)
        self._accepted = [each for each in self._accepted if not each.over][-MOST_GOALS:]
        if self.fault:
            self._log.warning("not cancelled", self.fault)

    def _answered(self, number: int, handle: ClientGoalHandle, now_s: float) -> None:
        if not handle.accepted:
            self._warn("refused", f"{self._sink.channel.topic} refuses a goal")
        else:
            if number == self._goals.newest:
                self._supersede(now_s + SUPERSEDED_S)
            self._accepted.append(_Accepted(handle))
            if self._goals.outdated(number):
                self._accepted[-1].cancel.want(now_s)
        self._send(self._goals.answered(number, handle.accepted, now_s))

    def _supersede(self, at_s: float) -> None:
        for each in self._accepted:
            if not each.cancel.wanted:
                each.cancel.want(at_s)

    def _cancel(self, now_s: float) -> None:
        for each in self._accepted:
            each.cancel.want(now_s)

    def _close(self) -> None:
        """Cancel all goals, also those without an answer yet, within `CLOSE_S`."""
        end_s = time.monotonic() + CLOSE_S
        self.hold()
        self._cancel(time.monotonic())
        context = self._node.context
        while (self._unanswered or self._accepted) and time.monotonic() < end_s:
            if not (context.ok() and self._client.server_is_ready()):
                break
            _serve(self._client, context, CLOSE_LOOK_S)
            self._read_answers(time.monotonic())
        if self._unanswered or self._accepted:
            self._node.get_logger().error(
                f"{self._sink.key}: {self._sink.channel.topic} has not confirmed that its goals are cancelled"
            )
        self._unanswered.clear()
        self._accepted.clear()
        executor = self._node.executor
        if executor is None:
            self._client.destroy()
        else:  # later: an event of an answer that was read here may wait, and needs the client
            executor.create_task(self._client.destroy)

    def _warn(self, kind: str, text: str) -> None:
        self._log.warning(kind, f"{self._sink.key}: {text}")


def _serve(waitable: Waitable, context: Context, timeout_s: float) -> None:
    """Wait for a waitable and execute it without an executor; callbacks of futures do not run.

    Args:
        waitable: of rclpy, such as an action client.
        context: of the waitable's node.
        timeout_s: the longest wait.
    """
    sizes = waitable.get_num_entities()
    waited = rclpy_implementation.WaitSet(
        sizes.num_subscriptions,
        sizes.num_guard_conditions,
        sizes.num_timers,
        sizes.num_clients,
        sizes.num_services,
        sizes.num_events,
        context.handle,
    )
    waited.clear_entities()
    waitable.add_to_wait_set(waited)
    waited.wait(round(timeout_s * NANOSECONDS))
    if not waitable.is_ready(waited):
        return
    execution = waitable.execute(waitable.take_data())
    try:
        execution.send(None)  # an action client without feedback callbacks never suspends
    except StopIteration:
        return
    execution.close()

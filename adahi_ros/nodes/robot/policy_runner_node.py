# SPDX-License-Identifier: Apache-2.0
"""Runs a robot's policy as a ROS action, for behaviour trees and task pipelines.

Serves the action `run_policy` (adahi_msgs/RunPolicy). A goal configures and activates the draft policy's
node. The end of the goal deactivates it, which holds the robot. Subscribes `draft_status`
(adahi_msgs/DraftStatus), `link_state` (adahi_msgs/LinkState), `safety_state` (adahi_msgs/SafetyState),
`episode_result` (adahi_msgs/EpisodeResult), which ends a goal with success or failure,
`success_estimate` (std_msgs/Float32), which the feedback forwards, and the `transition_event`
(lifecycle_msgs/TransitionEvent) of that node. Publishes `run_policy_heartbeat` (std_msgs/Empty) while a goal
runs; without it the policy's node deactivates itself. Publishes the goal's `instruction` (std_msgs/String).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from adahi_msgs.action import RunPolicy
from adahi_msgs.msg import DraftStatus, EpisodeResult, LinkState, SafetyState
from builtin_interfaces.msg import Duration as DurationMessage
from lifecycle_msgs.msg import State, TransitionEvent
from rclpy.action import ActionServer, CancelResponse, GoalResponse  # type: ignore[attr-defined]
from rclpy.action.server import ServerGoalHandle
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Float32, String

from adahi_ros.core.texts import abridged
from adahi_ros.nodes.common.executors import with_info
from adahi_ros.nodes.common.messages import from_status
from adahi_ros.nodes.common.parameters import Parameters, parameter
from adahi_ros.nodes.common.replies import NotRepliedError, elapsed
from adahi_ros.nodes.common.spin import run
from adahi_ros.nodes.robot.controller_switch import ControllerSwitch
from adahi_ros.nodes.robot.heartbeat_publisher import HeartbeatPublisher
from adahi_ros.nodes.robot.heartbeat_watch import TOPIC
from adahi_ros.nodes.robot.policy_client import CALL_S, NotStartedError, PolicyNode
from adahi_ros.robot.policy_run import Attempt, AttemptLimits, End, Preparation
from adahi_ros.safety.commands import LONGEST_STOP_S

LOOK_S = 0.05
MATCHED_S = 1.0  # for DDS to deliver an instruction
REACHED_S = 15.0  # for DDS to connect this node with the policy's; on a busy machine it takes so long
HOLD_S = 3.0  # for a call to the policy's node while this process ends; it may be configuring
PARTING_S = 0.2  # for clients to fetch the result
STATUS_DEPTH = 100
MESSAGE_LENGTH = 512
REST_S = LONGEST_STOP_S + 2.0  # safety_state is published once a second
NANOSECONDS = 10**9


@dataclass(frozen=True)
class PolicyRunnerParameters:
    """Parameters of the node."""

    policy_node: str = parameter("draft_policy", "Name of the policy's node, relative to the namespace")
    no_verifier_s: float = parameter(
        5.0, "End a goal after this time without a ready verifier, s; 0 for never", 0.0, 3600.0
    )
    no_steps_s: float = parameter(
        5.0, "End a goal after this time without a control step, s; 0 for never", 0.0, 3600.0
    )
    stopped_s: float = parameter(
        10.0, "How long a goal waits for the operator if the robot is stopped, s; 0 for ever", 0.0, 3600.0
    )
    held_s: float = parameter(
        0.0, "End a goal when the enabled robot was held for this time, s; 0 for never", 0.0, 3600.0
    )
    controller: str = parameter(
        "", "Controller of ros2_control that is active during goals alone; '' to switch none", optional=True
    )
    instead_of: str = parameter(
        "", "Controller that is inactive meanwhile, such as MoveIt's; '' for none", optional=True
    )
    feedback_period_s: float = parameter(0.5, "Time between two feedbacks, s", 0.05, 60.0)


class PolicyRunnerNode(Node):
    """The node that serves `run_policy`. One goal at a time; others are rejected meanwhile."""

    def __init__(self, **options: Any) -> None:
        super().__init__("policy_runner", **options)
        parameters = Parameters(self, PolicyRunnerParameters)
        self._values = values = parameters.read()
        parameters.frozen = True
        self._attempt: Attempt | None = None
        self._started_ns = 0  # by DDS's clock
        self._rest_ns = 0  # when the newest safety_state was sent, if the arm is at rest; else 0
        self._held = ""  # why the arm is held; empty while it is not
        self._left_ns = 0  # when the policy's node left the active state during the goal; 0 for never
        self._moved: bool | None = None  # whether the policy's node was active since the goal began
        self._busy = self._closing = False
        self._instruction: Publisher | None = None  # of a goal that has one
        name = values.policy_node
        self._policy = PolicyNode(self, name)
        self._switch = ControllerSwitch(self, values.controller, values.instead_of, self._policy.given_up)
        self._heartbeat = HeartbeatPublisher(self, name)
        deep = QoSProfile(depth=STATUS_DEPTH)
        self.create_subscription(DraftStatus, "draft_status", self._on_status, deep)
        self.create_subscription(LinkState, "link_state", self._on_link, 1)
        self.create_subscription(SafetyState, "safety_state", with_info(self._on_safety), 10)
        # Publishers may be latched or not, so there are two subscriptions.
        self.create_subscription(EpisodeResult, "episode_result", self._on_result, 10)
        kept = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.create_subscription(EpisodeResult, "episode_result", with_info(self._on_kept_result), kept)
        self.create_subscription(Float32, "success_estimate", self._on_estimate, 1)
        event = f"{name}/transition_event"
        self.create_subscription(TransitionEvent, event, with_info(self._on_transition), 10)
        self._server = ActionServer(
            self,
            RunPolicy,
            "run_policy",
            execute_callback=self._execute,
            goal_callback=self._on_goal,
            cancel_callback=lambda handle: CancelResponse.ACCEPT,
        )

    def destroy_node(self) -> None:
        """End the node, and its action server, which rclpy leaves."""
        if self._server in self.waitables:
            self._server.destroy()
        super().destroy_node()

    def end_goal(self) -> None:
        """Hold the robot, and end the goal with a result, because the node ends."""
        self._closing = True
        if not self._busy:
            return
        if self._attempt is not None:
            self._attempt.shut_down()
        self._policy.given_up.set_result(None)
        self._spin_while(lambda: self._busy, 1.5 * HOLD_S)  # `ros2 launch` waits 5 s before it kills
        self._spin_while(lambda: True, PARTING_S)

    def _spin_while(self, on: Callable[[], bool], limit_s: float) -> None:
        executor, end_s = self.executor, time.monotonic() + limit_s
        while executor is not None and on() and time.monotonic() < end_s:
            executor.spin_once(timeout_sec=LOOK_S)

    # Subscriptions

    def _on_status(self, message: DraftStatus) -> None:
        if self._attempt is not None:
            self._attempt.stepped(from_status(message), time.monotonic())

    def _on_link(self, message: LinkState) -> None:
        if self._attempt is not None:
            self._attempt.linked(message.verifier == LinkState.VERIFIER_READY, time.monotonic())

    def _on_safety(self, message: SafetyState, information: Mapping[str, int]) -> None:
        self._rest_ns = information["source_timestamp"] if message.at_rest else 0
        self._held = message.message if message.holding else ""
        if self._attempt is not None:
            self._attempt.safety(message.stopped, message.holding, message.enabled, time.monotonic())

    def _on_result(self, message: EpisodeResult) -> None:
        if self._attempt is not None:
            self._attempt.judged(message.success)

    def _on_kept_result(self, message: EpisodeResult, information: Mapping[str, int]) -> None:
        if information["source_timestamp"] >= self._started_ns:  # else it belongs to an earlier run
            self._on_result(message)

    def _on_estimate(self, message: Float32) -> None:
        if self._attempt is not None:
            self._attempt.success_estimate = message.data

    def _on_transition(self, message: TransitionEvent, information: Mapping[str, int]) -> None:
        if message.start_state.id != State.PRIMARY_STATE_ACTIVE:
            return
        self._left_ns = information["source_timestamp"]
        if self._attempt is not None:
            self._attempt.deactivated()

    # A goal

    def _on_goal(self, goal: RunPolicy.Goal) -> GoalResponse:
        if self._busy or self._closing:
            why = "the policy runner shuts down" if self._closing else "another goal is active"
            self.get_logger().warning(f"a goal is refused: {why}")
            return GoalResponse.REJECT
        limit = goal.time_limit
        if limit.sec < 0 or limit.nanosec >= NANOSECONDS:
            self.get_logger().warning(
                f"a goal is refused: time_limit: {limit.sec} s and {limit.nanosec} ns, must be 0 or more, "
                f"with less than {NANOSECONDS} ns"
            )
            return GoalResponse.REJECT
        self._busy = True
        return GoalResponse.ACCEPT

    async def _execute(self, handle: ServerGoalHandle) -> RunPolicy.Result:
        values = self._values
        allowed = values.no_verifier_s, values.no_steps_s, values.stopped_s, values.held_s
        limits = AttemptLimits(_seconds(handle.request.time_limit), *allowed)
        self._moved, self._left_ns = None, 0
        try:
            try:
                await self._start(handle, limits)
            except (NotRepliedError, NotStartedError) as error:
                attempt = self._attempt or Attempt(limits, time.monotonic())
                if self._closing:
                    attempt.shut_down()
                attempt.end(End.CANCELED if handle.is_cancel_requested else End.NOT_STARTED, str(error))
            else:
                assert self._attempt is not None
                attempt = self._attempt
                await self._until_ended(handle, attempt)
            return await self._over(handle, attempt)
        finally:
            self._heartbeat.end()
            if self._instruction is not None:  # else a later goal could receive this one's instruction
                self.destroy_publisher(self._instruction)
            self._attempt = self._instruction = None
            self._busy = False

    async def _until_ended(self, handle: ServerGoalHandle, attempt: Attempt) -> None:
        """Publish feedback until the attempt has ended."""
        published_s = time.monotonic()
        while attempt.ended(time.monotonic()) is None:
            await elapsed(self, LOOK_S)
            if handle.is_cancel_requested:
                attempt.end(End.CANCELED, "the goal was cancelled")
            now_s = time.monotonic()
            if now_s - published_s >= self._values.feedback_period_s:
                published_s = now_s
                handle.publish_feedback(
                    RunPolicy.Feedback(
                        steps=attempt.counts.steps,
                        calls=attempt.counts.calls,
                        fallbacks=attempt.counts.fallbacks,
                        person_steps=attempt.counts.person_steps,
                        person=attempt.person,
                        success_estimate=attempt.success_estimate,
                        holding=attempt.holding,
                        elapsed=_duration(attempt.elapsed_s(now_s)),
                    )
                )

    async def _over(self, handle: ServerGoalHandle, attempt: Attempt) -> RunPolicy.Result:
        """Hold the robot, and return the goal's result."""
        now_s = time.monotonic()
        ended = attempt.ended(now_s)
        assert ended is not None
        why, message = ended
        if why is End.DEACTIVATED:
            message = f"{message}: {await self._policy.last_error()}"
        if self._held and why in (End.TIME_LIMIT, End.NO_STEPS):
            message = f"{message}; held: {self._held}"
        self._heartbeat.end()
        moving = await self._hold()
        if moving:
            message = f"{message}; {moving}"
        elif still := await self._switch.end(HOLD_S if self._closing else CALL_S):
            message = f"{message}; {still}"
        message = abridged(message, MESSAGE_LENGTH)
        self.get_logger().info(f"goal over: {why.name.lower()}, {message}")
        if why is End.SUCCESS:
            handle.succeed()
        elif why is End.CANCELED:
            handle.canceled()
        else:
            handle.abort()
        return RunPolicy.Result(
            error_code=int(why),
            error_msg=message,
            steps=attempt.counts.steps,
            calls=attempt.counts.calls,
            fallbacks=attempt.counts.fallbacks,
            person_steps=attempt.counts.person_steps,
            takeovers=attempt.counts.takeovers,
            duration=_duration(attempt.elapsed_s(now_s)),
            held=not moving,
        )

    # The policy's node

    async def _start(self, handle: ServerGoalHandle, limits: AttemptLimits) -> None:
        """Configure and activate the node for a goal; the attempt begins with the activation.

        Args:
            handle: of the goal, which may name a checkpoint.
            limits: of the attempt.

        Raises:
            NotStartedError: the node fails to, or the goal was cancelled before the activation.
            NotRepliedError: a service of the node does not reply.
        """
        policy, state, until_s = self._policy, None, time.monotonic() + REACHED_S
        while state is None:
            try:
                state = await policy.state()
            except NotRepliedError:
                if time.monotonic() > until_s or handle.is_cancel_requested or self._closing:
                    raise
        self._moved = state == State.PRIMARY_STATE_ACTIVE
        await policy.prepare(state, handle.request.policy)
        until_s = time.monotonic() + REACHED_S
        while not (self._heartbeat.received or handle.is_cancel_requested or self._closing):
            if time.monotonic() > until_s:
                raise NotStartedError(f"{policy.name} does not get {TOPIC}: see namespaces and remaps")
            await elapsed(self, LOOK_S)
        if handle.request.instruction:
            await self._tell(handle.request.instruction)
        failed = "" if handle.is_cancel_requested else await self._switch.begin(CALL_S)
        if handle.is_cancel_requested:
            raise NotStartedError("the goal was cancelled before the policy was activated")
        if failed:
            raise NotStartedError(failed)
        self._attempt = Attempt(limits, time.monotonic())
        self._started_ns, self._left_ns, self._moved = time.time_ns(), 0, True
        self._heartbeat.begin()
        if handle.request.policy or state != State.PRIMARY_STATE_ACTIVE:
            await policy.change(Preparation.ACTIVATE)
            self._attempt.activated(time.monotonic())

    async def _tell(self, instruction: str) -> None:
        """Publish an instruction, and wait until it was received, for a bounded time."""
        kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._instruction = publisher = self.create_publisher(String, "instruction", kept)
        publisher.publish(String(data=instruction))
        until_s, at_once = time.monotonic() + MATCHED_S, Duration()
        while not publisher.wait_for_all_acked(at_once) and time.monotonic() < until_s:
            await elapsed(self, LOOK_S)

    async def _hold(self) -> str:
        """Deactivate the node if it is active, and wait for the arm's rest, for a bounded time.

        Returns:
            Why it is unknown whether the robot is held, for people; empty if the arm is at rest.
        """
        state = await self._policy.deactivate(HOLD_S if self._closing else CALL_S)
        if state is None or state == State.PRIMARY_STATE_ACTIVE:
            return "the policy's node does not confirm that it is inactive"
        if self._moved is False or (self._moved is None and state != State.PRIMARY_STATE_INACTIVE):
            return ""
        since_ns = self._left_ns or time.time_ns()
        limit_s = HOLD_S if self._closing else REST_S
        end_s = time.monotonic() + limit_s
        while not self._rested(state, since_ns):
            if time.monotonic() >= end_s:
                return f"no safety_state within {limit_s:g} s confirms that the arm is at rest"
            await elapsed(self, LOOK_S)
        return ""

    def _rested(self, state: int, since_ns: int) -> bool:
        """Whether the arm is at rest, for a node that is not active any more.

        An unconfigured node has stopped the arm if its transition from the active state was received.
        Otherwise it was restarted, and the state of the arm is unknown.
        """
        inactive = state == State.PRIMARY_STATE_INACTIVE
        return self._rest_ns >= since_ns if inactive else self._left_ns > 0


def _seconds(duration: DurationMessage) -> float:
    return float(duration.sec) + duration.nanosec / NANOSECONDS


def _duration(seconds: float) -> DurationMessage:
    return Duration(seconds=max(0.0, seconds)).to_msg()


def main() -> None:
    """Run the node as a process."""
    last_words = PolicyRunnerNode.end_goal
    sys.exit(run(PolicyRunnerNode, __doc__ or "", PolicyRunnerParameters, last_words=last_words))


if __name__ == "__main__":
    main()

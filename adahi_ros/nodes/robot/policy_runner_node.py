"""Runs a robot's policy as a ROS action, for behaviour trees and task pipelines.

Serves the action `run_policy` (adahi_msgs/RunPolicy): a goal configures and activates the draft policy's
node, and whatever ends it deactivates that, which holds the robot. Subscribes `draft_status`
(adahi_msgs/DraftStatus), `link_state` (adahi_msgs/LinkState), `safety_state` (adahi_msgs/SafetyState),
`episode_result` (adahi_msgs/EpisodeResult), which ends a goal by success or failure,
`success_estimate` (std_msgs/Float32), which the feedback passes on, and the `transition_event`
(lifecycle_msgs/TransitionEvent) of that node.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from adahi_msgs.action import RunPolicy
from adahi_msgs.msg import DraftStatus, EpisodeResult, LinkState, SafetyState
from lifecycle_msgs.msg import State, Transition, TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.action import ActionServer, CancelResponse, GoalResponse  # type: ignore[attr-defined]
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.task import Future
from std_msgs.msg import Float32

from adahi_ros.nodes.common.messages import from_status
from adahi_ros.nodes.common.parameters import Parameters, parameter
from adahi_ros.nodes.common.replies import NotRepliedError, elapsed, replied
from adahi_ros.nodes.common.spin import run
from adahi_ros.robot.attempt import Attempt, AttemptLimits, End, Preparation, preparations
from adahi_ros.texts import abridged

LOOK_S = 0.05
CALL_S = 5.0  # for a service of the policy's node and its reply
CONFIGURE_S = 180.0  # the first time may export a network
HOLD_S = 2.0  # for the same, where the process is to end
PARTING_S = 0.2  # for a result to be fetched by whoever waits for it
STATUS_DEPTH = 100
MESSAGE_LENGTH = 512
CHANGES = {
    Preparation.DEACTIVATE: Transition.TRANSITION_DEACTIVATE,
    Preparation.CLEAN_UP: Transition.TRANSITION_CLEANUP,
    Preparation.CONFIGURE: Transition.TRANSITION_CONFIGURE,
    Preparation.ACTIVATE: Transition.TRANSITION_ACTIVATE,
}


@dataclass(frozen=True)
class PolicyRunnerParameters:
    """What the node is told."""

    policy_node: str = parameter("draft_policy", "Name of the policy's node, relative to the namespace")
    no_verifier_s: float = parameter(
        5.0, "A goal ends where no verifier was ready for so long; 0 for never", 0.0, 3600.0
    )
    no_steps_s: float = parameter(
        5.0, "A goal ends where the policy made no step for so long; 0 for never", 0.0, 3600.0
    )
    stopped_s: float = parameter(
        10.0, "So long a robot that was stopped before may take to be enabled; 0 for ever", 0.0, 3600.0
    )
    feedback_period_s: float = parameter(0.5, "Between two feedbacks", 0.05, 60.0)


class CanceledError(RuntimeError):
    """The goal is cancelled before the policy acts."""


class NotStartedError(RuntimeError):
    """The policy's node cannot be made to act; the message says why."""


class PolicyRunnerNode(Node):
    """See the module. One goal at a time; another is refused meanwhile."""

    def __init__(self, **options: Any) -> None:
        super().__init__("policy_runner", **options)
        parameters = Parameters(self, PolicyRunnerParameters)
        self._values = values = parameters.read()
        parameters.frozen = True
        self._attempt: Attempt | None = None
        self._begun_ns = 0  # of DDS's own clock
        self._busy = self._closing = False
        self._given_up = Future()  # done once the goal that is being run must not wait for the policy's node
        name = values.policy_node
        self._change_state = self.create_client(ChangeState, f"{name}/change_state")
        self._get_state = self.create_client(GetState, f"{name}/get_state")
        self._set_parameters = self.create_client(
            SetParametersAtomically, f"{name}/set_parameters_atomically"
        )
        deep = QoSProfile(depth=STATUS_DEPTH)
        self.create_subscription(DraftStatus, "draft_status", self._on_status, deep)
        self.create_subscription(LinkState, "link_state", self._on_link, 1)
        self.create_subscription(SafetyState, "safety_state", self._on_safety, 10)
        # Whoever judges may keep what was said, for who meets it late, or may not.
        self.create_subscription(EpisodeResult, "episode_result", self._on_result, 10)
        kept = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        heard: Any = self._on_kept_result  # rclpy's own types know no callback that is told more
        self.create_subscription(EpisodeResult, "episode_result", heard, kept)
        self.create_subscription(Float32, "success_estimate", self._on_estimate, 1)
        self.create_subscription(TransitionEvent, f"{name}/transition_event", self._on_transition, 10)
        self._server = ActionServer(
            self,
            RunPolicy,
            "run_policy",
            execute_callback=self._execute,
            goal_callback=self._on_goal,
            cancel_callback=lambda handle: CancelResponse.ACCEPT,
        )

    def end_goal(self) -> None:
        """Hold the robot, and say what came of the goal: nobody will be there to end it."""
        self._closing = True
        if not self._busy:
            return
        if self._attempt is not None:
            self._attempt.shut_down()
        self._given_up.set_result(None)
        self._spin_while(lambda: self._busy, 2 * HOLD_S)
        self._spin_while(lambda: True, PARTING_S)

    def _spin_while(self, on: Callable[[], bool], limit_s: float) -> None:
        executor, end_s = self.executor, time.monotonic() + limit_s
        while executor is not None and on() and time.monotonic() < end_s:
            executor.spin_once(timeout_sec=LOOK_S)

    # What is heard

    def _on_status(self, message: DraftStatus) -> None:
        if self._attempt is not None:
            self._attempt.stepped(from_status(message), time.monotonic())

    def _on_link(self, message: LinkState) -> None:
        if self._attempt is not None:
            self._attempt.linked(message.verifier == LinkState.VERIFIER_READY, time.monotonic())

    def _on_safety(self, message: SafetyState) -> None:
        if self._attempt is not None:
            self._attempt.safety(message.stopped, message.holding)

    def _on_result(self, message: EpisodeResult) -> None:
        if self._attempt is not None:
            self._attempt.judged(message.success)

    def _on_kept_result(self, message: EpisodeResult, told: Mapping[str, int]) -> None:
        if told["source_timestamp"] >= self._begun_ns:  # else it was of something before
            self._on_result(message)

    def _on_estimate(self, message: Float32) -> None:
        if self._attempt is not None:
            self._attempt.success_estimate = message.data

    def _on_transition(self, message: TransitionEvent) -> None:
        if self._attempt is not None and message.start_state.id == State.PRIMARY_STATE_ACTIVE:
            self._attempt.deactivated()

    # A goal

    def _on_goal(self, goal: RunPolicy.Goal) -> GoalResponse:
        if self._busy or self._closing:
            why = "the policy runner is shut down" if self._closing else "another one is being run"
            self.get_logger().warning(f"a goal is refused: {why}")
            return GoalResponse.REJECT
        if not 0.0 <= goal.time_limit_s < float("inf"):
            self.get_logger().warning(
                f"a goal is refused: time_limit_s: {goal.time_limit_s}, must be from 0 on"
            )
            return GoalResponse.REJECT
        self._busy, self._given_up = True, Future()
        return GoalResponse.ACCEPT

    async def _execute(self, handle: Any) -> RunPolicy.Result:
        values = self._values
        allowed = values.no_verifier_s, values.no_steps_s, values.stopped_s
        limits = AttemptLimits(handle.request.time_limit_s, *allowed)
        try:
            try:
                await self._start(handle, limits)
            except (NotRepliedError, NotStartedError, CanceledError) as error:
                attempt = self._attempt or Attempt(limits, time.monotonic())
                if self._closing:
                    attempt.shut_down()
                attempt.end(End.CANCELED if isinstance(error, CanceledError) else End.NOT_STARTED, str(error))
            else:
                assert self._attempt is not None
                attempt = self._attempt
                await self._until_ended(handle, attempt)
            return await self._over(handle, attempt)
        finally:
            self._attempt = None
            self._busy = False

    async def _until_ended(self, handle: Any, attempt: Attempt) -> None:
        """Give feedback until something has ended the attempt."""
        told_s = time.monotonic()
        while attempt.ended(time.monotonic()) is None:
            await elapsed(self, LOOK_S)
            if handle.is_cancel_requested:
                attempt.end(End.CANCELED, "the goal was cancelled")
            now_s = time.monotonic()
            if now_s - told_s >= self._values.feedback_period_s:
                told_s = now_s
                handle.publish_feedback(
                    RunPolicy.Feedback(
                        steps=attempt.steps,
                        calls=attempt.calls,
                        fallbacks=attempt.fallbacks,
                        success_estimate=attempt.success_estimate,
                        holding=attempt.holding,
                        elapsed_s=attempt.elapsed_s(now_s),
                    )
                )

    async def _over(self, handle: Any, attempt: Attempt) -> RunPolicy.Result:
        """Hold the robot, and say what came of the goal."""
        now_s = time.monotonic()
        ended = attempt.ended(now_s)
        assert ended is not None
        why, message = ended
        held = await self._hold()
        if not held:
            message = f"{message}; the policy's node does not say that it is inactive"
        self.get_logger().info(f"goal over: {why.name.lower()}, {message}")
        if why is End.SUCCESS:
            handle.succeed()
        elif why is End.CANCELED:
            handle.canceled()
        else:
            handle.abort()
        return RunPolicy.Result(
            ended=int(why),
            message=abridged(message)[:MESSAGE_LENGTH],
            steps=attempt.steps,
            calls=attempt.calls,
            fallbacks=attempt.fallbacks,
            duration_s=attempt.elapsed_s(now_s),
            held=held,
        )

    # The policy's node

    async def _start(self, handle: Any, limits: AttemptLimits) -> None:
        """Have the node act as a goal says, and the attempt begin just before; its time, once the node acts.

        Args:
            handle: of the goal, which names a checkpoint, or leaves the one that there is.
            limits: of the attempt.

        Raises:
            NotStartedError: it cannot be.
            NotRepliedError: a service of it does not reply.
            CanceledError: the goal was cancelled before the node was told to act.
        """
        policy, name = handle.request.policy, self._values.policy_node
        try:
            way = preparations(await self._state(CALL_S, self._given_up), bool(policy))
        except ValueError as error:
            raise NotStartedError(f"{name} cannot be activated, it {error}") from None
        for each in way:
            if each is Preparation.CHOOSE_POLICY:
                await self._choose(policy)
            elif each is not Preparation.ACTIVATE:
                await self._change(each)
        if handle.is_cancel_requested:
            raise CanceledError("the goal was cancelled before the policy was activated")
        self._attempt = Attempt(limits, time.monotonic())
        self._begun_ns = time.time_ns()
        if Preparation.ACTIVATE in way:
            await self._change(Preparation.ACTIVATE)
            self._attempt.activated(time.monotonic())

    async def _choose(self, policy: str) -> None:
        checkpoint = Parameter("checkpoint", value=policy).to_parameter_msg()
        request = SetParametersAtomically.Request(parameters=[checkpoint])
        reply = await replied(self, self._set_parameters, request, CALL_S, self._given_up)
        if not reply.result.successful:
            raise NotStartedError(f"policy: {policy!r}, refused: {reply.result.reason}")

    async def _change(self, how: Preparation) -> None:
        request = ChangeState.Request(transition=Transition(id=CHANGES[how]))
        wait_s = CONFIGURE_S if how is Preparation.CONFIGURE else CALL_S
        if not (await replied(self, self._change_state, request, wait_s, self._given_up)).success:
            raise NotStartedError(f"{self._values.policy_node} cannot be {how.value}; its log says why")

    async def _hold(self) -> bool:
        """Deactivate the node, where it is active; return whether it is not.

        It is asked to whatever its state seems to be: it may have a request to activate itself yet, that it
        has not replied to, and this one comes after that.
        """
        deactivate = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_DEACTIVATE))
        wait_s = HOLD_S if self._closing else CALL_S
        try:
            reply = await replied(self, self._change_state, deactivate, wait_s)
            return reply.success or await self._state(wait_s) != State.PRIMARY_STATE_ACTIVE
        except NotRepliedError:
            return False

    async def _state(self, wait_s: float, given_up: Future | None = None) -> int:
        reply = await replied(self, self._get_state, GetState.Request(), wait_s, given_up)
        return int(reply.current_state.id)


def main() -> None:
    """Run the node as a process."""
    last_words = PolicyRunnerNode.end_goal
    sys.exit(run(PolicyRunnerNode, __doc__ or "", PolicyRunnerParameters, last_words=last_words))


if __name__ == "__main__":
    main()

"""Runs a robot's policy as a ROS action, for behaviour trees and task pipelines.

Serves the action `run_policy` (adahi_msgs/RunPolicy): a goal configures and activates the draft policy's
node, and whatever ends it deactivates that, which holds the robot. Subscribes `draft_status`
(adahi_msgs/DraftStatus), `link_state` (adahi_msgs/LinkState), `safety_state` (adahi_msgs/SafetyState),
`episode_result` (adahi_msgs/EpisodeResult), which ends a goal by success or failure, and
`success_estimate` (std_msgs/Float32), which the feedback passes on.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

from adahi_msgs.action import RunPolicy
from adahi_msgs.msg import DraftStatus, EpisodeResult, LinkState, SafetyState
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.action import ActionServer, CancelResponse, GoalResponse  # type: ignore[attr-defined]
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from std_msgs.msg import Float32

from adahi_ros.nodes.common.messages import from_status
from adahi_ros.nodes.common.parameters import Parameters, parameter
from adahi_ros.nodes.common.replies import NotRepliedError, elapsed, replied
from adahi_ros.nodes.common.spin import run
from adahi_ros.robot.attempt import Attempt, AttemptLimits, End
from adahi_ros.texts import abridged

LOOK_S = 0.05
CALL_S = 5.0  # for a service of the policy's node and its reply
CONFIGURE_S = 180.0  # the first time may export a network
STATUS_DEPTH = 100
MESSAGE_LENGTH = 512


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
        self._busy = False
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
        self.create_subscription(EpisodeResult, "episode_result", self._on_result, 10)
        self.create_subscription(Float32, "success_estimate", self._on_estimate, 1)
        self._server = ActionServer(
            self,
            RunPolicy,
            "run_policy",
            execute_callback=self._execute,
            goal_callback=self._on_goal,
            cancel_callback=lambda handle: CancelResponse.ACCEPT,
        )

    def hold_still(self) -> None:
        """Ask the policy's node to deactivate itself: nobody will be there to end the goal."""
        if self._busy:
            transition = Transition(id=Transition.TRANSITION_DEACTIVATE)
            self._change_state.call_async(ChangeState.Request(transition=transition))

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

    def _on_estimate(self, message: Float32) -> None:
        if self._attempt is not None:
            self._attempt.success_estimate = message.data

    # A goal

    def _on_goal(self, goal: RunPolicy.Goal) -> GoalResponse:
        if self._busy:
            self.get_logger().warning("a goal is refused: another one is being run")
            return GoalResponse.REJECT
        if not 0.0 <= goal.time_limit_s < float("inf"):
            self.get_logger().warning(
                f"a goal is refused: time_limit_s: {goal.time_limit_s}, must be from 0 on"
            )
            return GoalResponse.REJECT
        self._busy = True
        return GoalResponse.ACCEPT

    async def _execute(self, handle: Any) -> RunPolicy.Result:
        values, goal = self._values, handle.request
        allowed = values.no_verifier_s, values.no_steps_s, values.stopped_s
        limits = AttemptLimits(goal.time_limit_s, *allowed)
        try:
            try:
                await self._start(handle)
            except (NotRepliedError, NotStartedError, CanceledError) as error:
                attempt = Attempt(limits, time.monotonic())
                why = End.CANCELED if isinstance(error, CanceledError) else End.NOT_STARTED
                attempt.end(why, str(error))
            else:
                attempt = self._attempt = Attempt(limits, time.monotonic())
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

    async def _start(self, handle: Any) -> None:
        """Configure and activate the node as a goal says.

        Args:
            handle: of the goal, which names a checkpoint, or leaves the one that there is.

        Raises:
            NotStartedError: it cannot be.
            NotRepliedError: a service of it does not reply.
            CanceledError: the goal was cancelled before the node was told to act.
        """
        policy = handle.request.policy
        state = await self._state()
        if policy:
            if state == State.PRIMARY_STATE_ACTIVE:
                await self._change(Transition.TRANSITION_DEACTIVATE, CALL_S)
            if state in (State.PRIMARY_STATE_ACTIVE, State.PRIMARY_STATE_INACTIVE):
                await self._change(Transition.TRANSITION_CLEANUP, CALL_S)
            checkpoint = Parameter("checkpoint", value=policy).to_parameter_msg()
            request = SetParametersAtomically.Request(parameters=[checkpoint])
            reply = await replied(self, self._set_parameters, request, CALL_S)
            if not reply.result.successful:
                raise NotStartedError(f"policy: {policy!r}, refused: {reply.result.reason}")
            state = State.PRIMARY_STATE_UNCONFIGURED
        if state == State.PRIMARY_STATE_UNCONFIGURED:
            await self._change(Transition.TRANSITION_CONFIGURE, CONFIGURE_S)
            state = State.PRIMARY_STATE_INACTIVE
        if handle.is_cancel_requested:
            raise CanceledError("the goal was cancelled before the policy was activated")
        if state == State.PRIMARY_STATE_INACTIVE:
            await self._change(Transition.TRANSITION_ACTIVATE, CALL_S)
        elif state != State.PRIMARY_STATE_ACTIVE:
            raise NotStartedError(f"{self._values.policy_node} cannot be activated, it is shut down")

    async def _hold(self) -> bool:
        """Deactivate the node, where it is active; return whether it is not.

        It is asked to whatever its state seems to be: it may have a request to activate itself yet, that it
        has not replied to, and this one comes after that.
        """
        deactivate = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_DEACTIVATE))
        try:
            reply = await replied(self, self._change_state, deactivate, CALL_S)
            return reply.success or await self._state() != State.PRIMARY_STATE_ACTIVE
        except NotRepliedError:
            return False

    async def _state(self) -> int:
        reply = await replied(self, self._get_state, GetState.Request(), CALL_S)
        return int(reply.current_state.id)

    async def _change(self, transition: int, wait_s: float) -> None:
        request = ChangeState.Request(transition=Transition(id=transition))
        if not (await replied(self, self._change_state, request, wait_s)).success:
            label = {
                Transition.TRANSITION_CONFIGURE: "configured",
                Transition.TRANSITION_ACTIVATE: "activated",
                Transition.TRANSITION_DEACTIVATE: "deactivated",
                Transition.TRANSITION_CLEANUP: "cleaned up",
            }[transition]
            raise NotStartedError(f"{self._values.policy_node} cannot be {label}; its log says why")


def main() -> None:
    """Run the node as a process."""
    last_words = PolicyRunnerNode.hold_still
    sys.exit(run(PolicyRunnerNode, __doc__ or "", PolicyRunnerParameters, last_words=last_words))


if __name__ == "__main__":
    main()

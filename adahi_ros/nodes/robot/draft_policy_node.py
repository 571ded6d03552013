# SPDX-License-Identifier: Apache-2.0
"""The robot's node: proposes an action for every observation, and requests plans from the verifier.

Subscribes what its contract names, by default `joint_states` (sensor_msgs/JointState) and `task_state`
(adahi_msgs/TaskState), `enable` (std_msgs/Bool), `run_policy_heartbeat` (std_msgs/Empty, of a policy runner),
`instruction` (std_msgs/String, latched) and `assignments` (adahi_msgs/Assignments, of the verifier). For a
person who takes over, `takeover` (std_msgs/Bool) or `joy` (sensor_msgs/Joy), and `teleop_command`.
Publishes `command` (by default trajectory_msgs/JointTrajectory), `draft_status` (adahi_msgs/DraftStatus),
`link_state` (adahi_msgs/LinkState), `safety_state` (adahi_msgs/SafetyState), `planned_trajectory`
(trajectory_msgs/JointTrajectory: positions that the plan commands from this step on) and /diagnostics. Serves
`~/set_enabled` (std_srvs/SetBool) and `~/give_back` (std_srvs/Trigger). Calls `verify_draft` and
`describe_target`.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from adahi_msgs.msg import Assignments, DraftStatus, LinkState
from rclpy.lifecycle import LifecyclePublisher, LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from adahi_ros.contract.assembler import Observation, ObservationAssembler
from adahi_ros.contract.fields import InputError
from adahi_ros.contract.published import why_silent
from adahi_ros.core.health_level import Health, Level
from adahi_ros.core.registry import at_place
from adahi_ros.core.signature import OBSERVATION
from adahi_ros.core.texts import printable
from adahi_ros.nodes.common.diagnostics import DiagnosticsPublisher
from adahi_ros.nodes.common.executors import executor_of
from adahi_ros.nodes.common.graph import endpoints
from adahi_ros.nodes.common.managed import ManagedNode, autostart
from adahi_ros.nodes.common.messages import to_link_state, to_status, to_trajectory
from adahi_ros.nodes.common.qos import ASSIGNMENTS, message_type, notice_qos, observation_qos
from adahi_ros.nodes.common.spin import run
from adahi_ros.nodes.common.throttled_log import ThrottledLog
from adahi_ros.nodes.common.timers import DueTimer, steady_timer
from adahi_ros.nodes.common.verifier_messages import REQUEST
from adahi_ros.nodes.robot.command_publisher import LINK_STATE, CommandPublisher
from adahi_ros.nodes.robot.dds_transport import open_verifiers
from adahi_ros.nodes.robot.draft_policy_parameters import DraftPolicyParameters
from adahi_ros.nodes.robot.draft_policy_parts import (
    check_fit,
    controller_config,
    controller_of,
    encoder_of,
    first_episode,
    planned_positions,
    policy_and_contract,
    view_of,
    wants_of_robot,
)
from adahi_ros.nodes.robot.heartbeat_watch import HeartbeatWatch
from adahi_ros.nodes.robot.kept_messages import MessageIntake
from adahi_ros.nodes.robot.operator import OperatorInputs
from adahi_ros.policies.interface import Policy
from adahi_ros.protocol.records import StepRecord
from adahi_ros.protocol.request import Sender
from adahi_ros.robot.diagnosis import Diagnosis, News, calibration_warning, deadline_warnings
from adahi_ros.robot.loop import ControlLoop
from adahi_ros.robot.outcomes import DraftError, Fallback
from adahi_ros.robot.session import VerifierSession
from adahi_ros.robot.transports import TRANSPORTS
from adahi_ros.safety.envelope import PAUSE_S, RESTS
from adahi_ros.safety.holds import Hold, State

if TYPE_CHECKING:
    from adahi_ros.contract.contract import Contract
    from adahi_ros.nodes.robot.driver_monitor import DriverMonitor

LINK_STATE_PERIOD_S = 0.2
WATCH_SLACK_S = 0.025  # a control step checks the verifier's presence this much before the timer
PLAN = "planned_trajectory"
STATUS_DEPTH = 100  # for a busy recorder
LATE = "adahi_ros.robot.lockstep_loop:LockstepLoop"  # only simulations need it
WITH_PERSON = "adahi_ros.nodes.robot.teleoperator:loop_with_person"


class DraftPolicyNode(ManagedNode):
    """The robot's node. A step begins when joint state and task state of the same time have arrived."""

    def __init__(self, **options: Any) -> None:
        self._condition = Diagnosis(time.monotonic())
        self._commands: Any = None  # a CommandPublisher, while the node is configured
        self._while_active = ExitStack()
        self._throttled, self._once = ThrottledLog(self), ThrottledLog(self, math.inf)
        super().__init__("draft_policy", DraftPolicyParameters, **options)
        self._operator = OperatorInputs(self, lambda: self._condition.active, self._on_operator)
        self._driver: DriverMonitor | None = None  # of the last contract with one
        self._heartbeat: HeartbeatWatch | None = None
        self._watch_takeover()

    # Lifecycle

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Look for a verifier, then begin to step; refuse where another program commands the arm."""
        began_s = time.monotonic()
        assert self._heartbeat is not None
        try:
            self._commands.open()
        except ValueError as error:
            self.last_error = str(error)
            self.get_logger().error(f"cannot be activated: {error}")
            self._heartbeat.end()
            return TransitionCallbackReturn.FAILURE
        self._link_state_publisher = self._open_publisher(LinkState, LINK_STATE, 1, self._while_active)
        self._plan_publisher = self._open_publisher(JointTrajectory, PLAN, 1, self._while_active)
        self._forget_inputs()
        self._condition.begin(time.monotonic())
        wait_s = self._values.verifier_wait_s
        self._loop.start(wait_s)
        self._due.set(self._loop.next_due_s)
        self._commands.start()
        self._heartbeat.begin(began_s)
        self._condition.active = True
        self.get_logger().info(f"active; waits up to {wait_s:g} s for a verifier before the first step")
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold the robot; send no more actions, not even for a step that waits for its reply."""
        self._condition.active = False
        assert self._heartbeat is not None
        self._heartbeat.end()
        self._commands.stop()
        self._stop_loop()
        self._forget_inputs()
        self._condition.forget(time.monotonic())
        self._while_active.close()
        return super().on_deactivate(state)

    def destroy_node(self) -> None:
        """End the node."""
        for each in (self._operator, self._driver, self._heartbeat):
            if each is not None:
                each.close()
        super().destroy_node()

    def hold_still(self) -> None:
        """Bring the robot to rest, because the node ends; log the counts of its steps."""
        totals = self._loop.totals if self._condition.active else None
        self._close()
        if totals is not None and totals.steps:
            shares = f"{totals.transmitted} transmitted, {totals.verified} verified"
            self.get_logger().info(f"over: {totals.steps} steps, {shares}")
            if self._transport.figures:
                self.get_logger().info(f"verifiers: {json.dumps(self._transport.figures, default=str)}")

    def _open(self, values: DraftPolicyParameters) -> None:
        policy, contract = policy_and_contract(values)
        self._values = values
        self._condition = Diagnosis(time.monotonic(), contract.period_s)
        encoder, encode = encoder_of(values, contract)
        check_fit(values, contract, policy.signature, encoder)
        first = first_episode(values)
        self._inputs = ObservationAssembler(contract, encode, self._on_missed, first)
        self._intake = MessageIntake(self, lambda: self._condition.active, self._take)
        if contract.episode is None:
            self.get_logger().info(
                f"counts episodes from {first}; first_episode={first} and seed={values.seed} repeat the "
                "random draws of this trial"
            )
        view = view_of(values, contract)
        permission = self._operator.permission
        self._watch_takeover()
        self._watch_driver(contract)
        self._commands = CommandPublisher(self, contract, values, permission, self._opened)
        # Not latched: a bag would get old steps with the time of its start.
        self._status_publisher = self._open_publisher(DraftStatus, "draft_status", STATUS_DEPTH, self._opened)
        self._opened.callback(self._while_active.close)
        reliability = values.verification.reliability
        target, codes = values.verification.target_name, policy.signature.codes
        sender = Sender.of_new_start(values.robot_id, target, None if codes is None else codes.fingerprint)
        beside = self._poll, self._say, self._opened
        self._transport = open_verifiers(self, values.verification, sender, *beside)
        transport = values.verification.transport
        if transport.name:
            made = TRANSPORTS.made("verification.transport", transport.name, transport.arguments)
            self._transport = made.around(self._transport, policy, time.monotonic)
        self._due = DueTimer(self, self._poll)
        self._opened.callback(self._due.destroy)
        controller = controller_of(values, policy, contract)
        wants = wants_of_robot(values, contract, policy.signature, encoder, controller, self._commands.limits)
        self._session = VerifierSession(self._transport, wants, reliability == "best_effort", self._on_link)
        late = values.command.late_steps if values.command.lockstep else 0
        loop = partial(at_place(LATE), late) if late else ControlLoop
        if values.takeover.command != "none" or values.takeover.button >= 0:
            person = self._commands, self._operator, self._opened
            loop = at_place(WITH_PERSON)(self, values, contract, *person)
        self._loop = loop(
            controller,
            self._session,
            view,
            values.robot_id,
            values.seed,
            values.deadline_s,
            self._commands,
            self._publish_status,
            Fallback(values.fallback_limit if values.fallback == "hold" else None, bool(values.checkpoint)),
            time.monotonic,
            contract.period_s if values.wait_policy == "ahead" else None,
            math.inf if values.command.lockstep else max(RESTS * contract.period_s, PAUSE_S),
        )
        self._opened.callback(self._stop_loop)  # runs before timer and clients are destroyed
        self._loop.tell(values.instruction)
        kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._subscribe(String, "instruction", self._on_instruction, kept)
        self._subscribe(Assignments, ASSIGNMENTS, self._on_assignments, notice_qos())
        for topic, channel in contract.channels.items():
            qos, overridable = observation_qos(channel), QoSOverridingOptions.with_default_policies()
            called = self._commands.others.watched(
                topic, partial(self._intake.receive, topic, most=qos.depth)
            )
            kind = message_type(channel.kind)
            self._subscribe(kind, topic, called, qos, qos_overriding_options=overridable)
        timeout_s = values.heartbeat_timeout_s
        self._heartbeat = HeartbeatWatch(self, timeout_s, self._deactivate_itself, self._opened)
        steady_timer(self, LINK_STATE_PERIOD_S, self._publish_link_state, self._opened)
        self._opened.callback(DiagnosticsPublisher(self, values.robot_id, "control", self._health).destroy)
        absent = "no policy on the robot: it executes the target's plans"
        self.get_logger().info(f"draft policy of {policy.signature}" if values.checkpoint else absent)
        self._check_deadline(values)
        self._check_calibration(policy)

    def _open_publisher(self, kind: type, topic: str, depth: int, opened: ExitStack) -> LifecyclePublisher:
        publisher = self.create_lifecycle_publisher(
            kind, topic, depth, qos_overriding_options=QoSOverridingOptions.with_default_policies()
        )
        opened.callback(self.destroy_lifecycle_publisher, publisher)
        return publisher

    def _subscribe(
        self, kind: type, topic: str, called: Callable[..., None], qos: QoSProfile, **options: Any
    ) -> None:
        subscription = self.create_subscription(kind, topic, called, qos, **options)
        self._opened.callback(self.destroy_subscription, subscription)

    def _on_instruction(self, message: String) -> None:
        most = REQUEST["instruction"]
        if len(message.data) > most:
            self._throttled.warning(
                "instruction", f"ignored: instruction: {len(message.data)} characters, must be {most} at most"
            )
            return
        if message.data == self._loop.instruction:
            return
        self.get_logger().info(f"instruction: {printable(message.data)!r}")
        self._loop.tell(message.data)
        self._due.set(self._loop.next_due_s)

    def _on_assignments(self, message: Assignments) -> None:
        from adahi_ros.protocol.notice import Notice

        try:
            notice = Notice.from_message(message, self._values.robot_id)
        except ValueError as error:
            self._throttled.warning("assignments", f"ignored: assignments: {error}")
            return
        if self._loop.notice(notice):
            self.get_logger().info(f"assignment {notice.own} of the verifier replaces its former one")
            self._due.set(self._loop.next_due_s)

    def _close(self) -> None:
        self._condition.active = False
        super()._close()
        self._commands = None

    def _on_operator(self) -> None:
        """The operator has enabled or stopped the robot."""
        if self._commands is not None:
            self._commands.brake_if_held()

    def _watch_takeover(self) -> None:
        """Receive takeovers where a person may take over, also before the node is configured."""
        if self.get_parameter("takeover.command").value != "none":
            self._operator.watch_takeover(self.get_parameter("takeover.button").value)

    def _watch_driver(self, contract: Contract) -> None:
        """Watch this contract's driver, and still the same one where it has not changed."""
        before = () if self._driver is None else self._driver.monitors
        if contract.driver and contract.driver == before:
            return
        if self._driver is not None:
            self._driver.close()
            self._driver = None
        if not contract.driver:
            self._operator.permission.driver("")
            return
        from adahi_ros.nodes.robot.driver_monitor import DriverMonitor  # few contracts have one

        self._driver = DriverMonitor(self, contract.driver, self._on_driver, self._on_inactive)

    def _on_driver(self, fault: str, known: bool) -> None:
        """The driver's state has changed."""
        self._operator.permission.driver(fault, known)
        self._on_operator()

    def _on_inactive(self, controller: str) -> None:
        """A controller is not active: it follows no command."""
        if self._commands is not None:
            self._commands.leave_controller(controller)

    def _stop_loop(self) -> None:
        self._loop.stop()
        self._due.set(self._loop.next_due_s)

    def _check_deadline(self, values: DraftPolicyParameters) -> None:
        if values.wait_policy != "wait":
            return
        limits = self._inputs.contract.period_s, values.safety.hold_after_s
        for warning in deadline_warnings(values.deadline_s, *limits):
            self.get_logger().warning(warning)

    def _check_calibration(self, policy: Policy) -> None:
        if warning := calibration_warning(self._declared.value_beside("calibration.draft"), policy.digest):
            self.get_logger().warning(warning)

    # A step

    def _forget_inputs(self) -> None:
        self._inputs.clear()
        self._intake.clear()

    def _take(self, topic: str, message: object) -> None:
        try:
            observation = self._inputs.add(topic, message, self.get_clock().now().nanoseconds)
            if observation is not None:
                self._intake.pause()
                self._observe(observation)
        except InputError as error:
            self._condition.ignored(error.field)
            self._throttled.warning("input", f"ignored: {error}")
        except DraftError as error:
            self._throttled.warning("draft", f"no command: {error}")

    def _on_missed(self, fault: InputError) -> None:
        self._condition.missed(fault.field)
        self._throttled.warning("step", f"no step: {fault}")

    def _observe(self, observation: Observation) -> None:
        if news := self._condition.observed(observation.stamp_ns, time.monotonic()):
            self._say(news)
        if self._loop.begins_alone:
            label = self._loop.fallback.label
            self._throttled.warning("verifier", f"no verifier: {label} until there is one")
        if self._declared.changed:
            self._declared.changed = False
            values = self._declared.read()
            try:
                config = controller_config(values)
            except Exception as error:  # noqa: BLE001  another package's gate may raise anything
                self.get_logger().error(f"{error}; keeps the former gate")
                config = self._loop.controller.config
            self._loop.change(config, values.deadline_s)
            self._check_deadline(values)
        self._compare(observation)
        try:
            self._loop.step(observation)
        finally:
            self._poll(WATCH_SLACK_S)

    def _compare(self, observation: Observation) -> None:
        """Hold the arm while an observation is in another unit than the target's data.

        Before its first motion, and after a jump or a fault of the driver, which may be another one now; as
        soon as the target is known.
        """
        permission = self._operator.permission
        clear = all(permission.holds[each] is State.CLEAR for each in (Hold.UNLIKE, Hold.JUMPED, Hold.DRIVER))
        if self._loop.totals.commanded and clear and not permission.uncompared:
            return
        for fault in self._inputs.picture_faults:
            self._once.warning(fault, fault)
        observed = {OBSERVATION: observation.values, **observation.named}
        unlike = self._session.unlike({name: values[None] for name, values in observed.items()})
        if unlike is not None:
            permission.compare(unlike)
        if unlike:
            self._throttled.warning("unlike", f"held: {unlike}")

    def _poll(self, slack_s: float = 0.0) -> None:
        """Process messages of the verifier, and what is due."""
        self._loop.poll(slack_s)
        self._due.set(self._loop.next_due_s)

    def _publish_status(self, record: StepRecord) -> None:
        if self._status_publisher.get_subscription_count():  # saves time without subscribers
            self._status_publisher.publish(to_status(record))
        if self._plan_publisher.get_subscription_count():
            contract = self._inputs.contract
            planned = planned_positions(contract.action, self._loop.controller.coming(record.step))
            self._plan_publisher.publish(to_trajectory(*planned, contract.period_s, record.stamp_ns))

    def _publish_link_state(self) -> None:
        if not self._condition.active or not self._link_state_publisher.get_subscription_count():
            return
        session, now_ns = self._session, self.get_clock().now().nanoseconds
        estimate = session.estimate(time.monotonic())
        self._link_state_publisher.publish(
            to_link_state(estimate, self._values.robot_id, int(session.link), session.windows_resent, now_ns)
        )

    def _on_link(self) -> None:
        news = self._condition.news(self._session, self._loop, time.monotonic())
        if news is None:
            return
        self._say(news)
        if news.refuses:
            self.last_error = news.text
            self.trigger_deactivate()

    def _deactivate_itself(self, why: str) -> None:
        self.get_logger().error(f"deactivates itself: {why}")
        self.last_error = why
        self.trigger_deactivate()

    def _say(self, news: News) -> None:
        if news.level is Level.OK:
            self.get_logger().info(news.text)
        elif news.level is Level.WARN:
            self.get_logger().warning(news.text)
        else:
            self.get_logger().error(news.text)

    # Diagnostics

    def _lacking(self) -> str:
        """Return why no observation arrives, as far as topics and names show it; else ''."""
        channels, arrived = self._inputs.contract.channels, self._inputs.arrived()
        if not self._condition.waits(time.monotonic()):
            return ""
        offered = endpoints(self, {channel.kind for channel in channels.values()})
        faults = [
            arrived[topic]
            if topic in arrived
            else why_silent(self.resolve_topic_name(topic), channel, offered)
            for topic, channel in channels.items()
        ]
        return "; ".join(filter(None, faults))

    def _health(self) -> Health:
        guard, now_s = self._commands.guard, time.monotonic()
        if news := self._condition.lacks(self._lacking()):
            self._say(news)
        return self._condition.report(
            self._session,
            self._loop,
            self._commands.enabled,
            guard.permission.stopped,
            {why.name.lower(): count for why, count in guard.counts.items()},
            self._transport.figures,
            now_s,
            self.get_clock().now().nanoseconds,
            (guard.reason(now_s) if guard.permission.needs_press else guard.permission.takeover.held(now_s))
            or guard.outside,
        )


def main() -> None:
    """Run the node as a process."""
    sys.exit(
        run(
            DraftPolicyNode,
            __doc__ or "",
            DraftPolicyParameters,
            make_executor=executor_of,
            last_words=DraftPolicyNode.hold_still,
            start=autostart,
        )
    )


if __name__ == "__main__":
    main()

"""The robot's node: drafts an action for every observation, asks the target where the gate says so.

Subscribes what its contract names, by default `joint_states` (sensor_msgs/JointState) and `task_state`
(adahi_msgs/TaskState), and `enable` (std_msgs/Bool); publishes `command` (by default
trajectory_msgs/JointTrajectory), `draft_status` (adahi_msgs/DraftStatus), `link_state`
(adahi_msgs/LinkState), `safety_state` (adahi_msgs/SafetyState) and /diagnostics; serves
`~/set_enabled` (std_srvs/SetBool); calls
`verify_draft` and `describe_target`.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
from adahi_msgs.msg import DraftStatus, LinkState
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

from adahi_ros.contract.assembler import Observation, ObservationAssembler
from adahi_ros.contract.contract import Channel
from adahi_ros.contract.fields import InputError
from adahi_ros.contract.times import NANOSECONDS
from adahi_ros.nodes.common.diagnostics import DiagnosticsPublisher, Health
from adahi_ros.nodes.common.message_types import message_type
from adahi_ros.nodes.common.messages import observation_qos, to_link_state, to_status
from adahi_ros.nodes.common.parameters import ParameterError, Parameters
from adahi_ros.nodes.common.policies import encoder_from, policy_from
from adahi_ros.nodes.common.spin import freeze_garbage, run
from adahi_ros.nodes.common.urgent_executor import Urgent, UrgentExecutor
from adahi_ros.nodes.robot.command_publisher import Commander
from adahi_ros.nodes.robot.control_loop import ControlLoop, DraftError
from adahi_ros.nodes.robot.draft_policy_parameters import (
    TABLE,
    check_features,
    contract_of,
    controller_config,
    fallback_of,
    first_episode,
)
from adahi_ros.nodes.robot.verifier_client import Link, VerifierClient
from adahi_ros.policy.interface import Policy
from adahi_ros.robot.controller import Controller
from adahi_ros.robot.target_view import target_view

NO_OBSERVATION_S = 1.0  # then an active node is in error
LINK_STATE_PERIOD_S = 0.2
STATUS_DEPTH = 100  # for a recorder that was busy, or came a moment late
WARNING_PERIOD_S = 1.0
SLOW_WARNING_PERIOD_S = 10.0  # of a verifier that stays too slow


class DraftPolicyNode(LifecycleNode):
    """See the module. A step begins when a joint state and a task state of one time are there."""

    def __init__(self, **options: Any) -> None:
        super().__init__("draft_policy", **options)
        self._declared = Parameters(self, TABLE)
        self._opened = ExitStack()
        self.urgent = Urgent()
        """What a control step waits for."""
        self._active = False
        if not self.get_parameter("autostart").value:
            self.get_logger().info("unconfigured; waits for 'configure' and 'activate'")
        self._service_change_state.callback = _refusing(self._service_change_state.callback)

    # Lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load the policy and open the topics and services."""
        try:
            values = self._declared.read()
            self._open(values, policy := policy_from(values))
        except Exception as error:  # noqa: BLE001  rclpy would end the transition without a word
            self._close()
            reason = error if isinstance(error, ValueError) else repr(error)
            self.get_logger().error(f"cannot be configured: {reason}")
            return TransitionCallbackReturn.FAILURE
        self._declared.frozen = True
        self.get_logger().info(
            f"draft policy of {policy.spec.parameters} parameters, tokenizer {policy.decoder.fingerprint}"
        )
        self._check_deadline(values)
        self._check_calibration(policy)
        freeze_garbage()
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Look for a verifier, then begin to step."""
        self._forget()
        self._refusal = ""
        self._wait_until = self._heard + self._values["verifier_wait_s"]
        self._verifier.start()
        self._commander.start()
        self._active = True
        wait_s = self._values["verifier_wait_s"]
        self.get_logger().info(f"active; looks for a verifier, for {wait_s:g} s before it begins without one")
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold the robot; send no more actions, not even for a step that waits for its answer."""
        self._active = False
        self._commander.stop()
        self._verifier.stop()
        self._loop.stop()
        self._forget()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close everything; parameters can be set again."""
        self._close()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close everything."""
        self._close()
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close everything, after a transition that has failed halfway; the node can be configured again."""
        self._close()
        return TransitionCallbackReturn.SUCCESS

    def hold_still(self) -> None:
        """Bring the robot to rest: nobody will command it any more."""
        self._close()

    def _open(self, values: dict[str, Any], policy: Policy) -> None:
        self._values = values
        self._refusal = ""
        contract = self._contract = contract_of(values, policy.spec)
        encoder = encoder_from(contract.encoder) if contract.cameras else None
        check_features(values, contract, policy.spec, encoder)
        encode = None if encoder is None else encoder.encode
        first = first_episode(values)
        self._inputs = ObservationAssembler(contract, encode, self._on_missed, first)
        if contract.episode is None:
            self.get_logger().info(
                f"counts episodes from {first}; with first_episode={first} and seed={values['seed']} a trial "
                "has the same draws again"
            )
        view = target_view(
            values["verification.vision"],
            policy.spec.window_length,
            contract.number_dim,
            values["verification.jpeg_quality"],
            values["verification.jpeg_budget_bytes"],
        )
        self._commander = Commander(self, contract, values, self._opened)
        kept = QoSProfile(depth=STATUS_DEPTH, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._status_publisher = self._open_publisher(DraftStatus, "draft_status", kept)
        self._link_state_publisher = self._open_publisher(LinkState, "link_state", QoSProfile(depth=1))
        self._verifier = VerifierClient(
            self,
            policy,
            values["robot_id"],
            values["verification.reliability"],
            self._on_verifier,
            encoder.fingerprint if encoder is not None and view.needs_encoder else None,
        )
        self._opened.callback(self._verifier.destroy)
        self._loop = ControlLoop(
            Controller(policy, controller_config(values)),
            self._verifier,
            view,
            values["robot_id"],
            values["seed"],
            values["deadline_s"],
            self._commander,
            lambda record: self._status_publisher.publish(to_status(record)),
            fallback_of(values),
        )
        self._forget()
        observations = [
            self._open_subscription(topic, channel) for topic, channel in contract.channels.items()
        ]
        asking, holding = self._verifier.urgent, self._commander.urgent
        self.urgent = Urgent(
            clients=asking.clients,
            services=holding.services,
            timers=[*holding.timers, *asking.timers],
            subscriptions=[*holding.subscriptions, *observations],
        )
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        timer = self.create_timer(LINK_STATE_PERIOD_S, self._publish_link_state, clock=steady)
        self._opened.callback(self.destroy_timer, timer)
        self._opened.callback(DiagnosticsPublisher(self, values["robot_id"], self._health).destroy)

    def _open_publisher(self, kind: type, topic: str, qos: QoSProfile) -> Any:
        publisher = self.create_lifecycle_publisher(
            kind, topic, qos, qos_overriding_options=QoSOverridingOptions.with_default_policies()
        )
        self._opened.callback(self.destroy_lifecycle_publisher, publisher)
        return publisher

    def _open_subscription(self, topic: str, channel: Channel) -> Any:
        subscription = self.create_subscription(
            message_type(channel.kind),
            topic,
            partial(self._on_message, topic),
            observation_qos(channel),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        self._opened.callback(self.destroy_subscription, subscription)
        return subscription

    def _close(self) -> None:
        self._active = False
        self.urgent = Urgent()
        self._opened.close()
        self._declared.frozen = False

    def _forget(self) -> None:
        self._inputs.clear()
        self._faults: Counter[str] = Counter()
        self._missed: Counter[str] = Counter()
        self._newest_ns = 0
        self._heard = time.monotonic()
        self._reported = (self._heard, 0, 0, 0, 0)

    def _check_deadline(self, values: dict[str, Any]) -> None:
        period_s = self._contract.period_s
        if values["deadline_s"] >= period_s:
            self.get_logger().warning(
                f"deadline_s: {values['deadline_s']:g}, should be below the control period, {period_s:g} s: "
                "a step that waits longer is superseded by the next observation"
            )
        if values["deadline_s"] > values["safety.hold_after_s"]:
            self.get_logger().warning(
                f"deadline_s: {values['deadline_s']:g}, should be at most safety.hold_after_s, "
                f"{values['safety.hold_after_s']:g} s: an answer that comes later is not executed"
            )

    def _check_calibration(self, policy: Policy) -> None:
        calibrated = self._declared.told_beside("calibration.draft")
        if calibrated not in (None, policy.digest):
            self.get_logger().warning(
                f"calibration.draft: {calibrated}, but the draft policy is {policy.digest}: the threshold of "
                "the gate was measured for another; run 'adahi calibrate' for this one"
            )

    # A step

    def _on_message(self, topic: str, message: Any) -> None:
        if not self._active:
            return
        try:
            observation = self._inputs.add(topic, message, self.get_clock().now().nanoseconds)
            if observation is not None:
                self._observe(observation)
        except InputError as error:
            self._faults[error.field] += 1
            self.get_logger().warning(f"ignored: {error}", throttle_duration_sec=WARNING_PERIOD_S)
        except DraftError as error:
            self.get_logger().warning(f"no command: {error}", throttle_duration_sec=WARNING_PERIOD_S)

    def _on_missed(self, fault: InputError) -> None:
        self._missed[fault.field] += 1
        self.get_logger().warning(f"no step: {fault}", throttle_duration_sec=WARNING_PERIOD_S)

    def _observe(self, observation: Observation) -> None:
        self._newest_ns, self._heard = observation.stamp_ns, time.monotonic()
        if self._verifier.link is Link.ABSENT and self._loop.totals.steps == 0:
            if time.monotonic() < self._wait_until:
                return
            self.get_logger().warning(
                f"no verifier: {self._loop.fallback.label} until there is one",
                throttle_duration_sec=WARNING_PERIOD_S,
            )
        if self._declared.changed:
            self._declared.changed = False
            values = self._declared.read()
            self._loop.controller.config = controller_config(values)
            self._loop.deadline_s = values["deadline_s"]
            self._check_deadline(values)
        self._loop.observe(observation)

    def _publish_link_state(self) -> None:
        client, now_ns = self._verifier, self.get_clock().now().nanoseconds
        self._link_state_publisher.publish(
            to_link_state(
                client.estimate(), self._values["robot_id"], int(client.link), client.windows_resent, now_ns
            )
        )

    def _on_verifier(self) -> None:
        link, trouble = self._verifier.link, self._verifier.trouble
        if link is Link.READY:
            if not self._verifier.on_trial:
                self.get_logger().info(link.label)
        elif link is Link.DOUBTED:
            self.get_logger().warning(trouble, throttle_duration_sec=SLOW_WARNING_PERIOD_S)
        elif link is Link.ABSENT:
            self.get_logger().warning(trouble, throttle_duration_sec=WARNING_PERIOD_S)
        elif self._loop.totals.steps > 0:
            self.get_logger().error(f"{link.label}, {self._loop.fallback.label}: {trouble}")
        else:
            self._refusal = f"refused to start, {link.label}: {trouble}"
            self.get_logger().error(self._refusal)
            self.trigger_deactivate()

    # Diagnostics

    def _health(self) -> Health:
        totals, link, estimate = self._loop.totals, self._verifier.link, self._verifier.estimate()
        fallbacks = totals.fallbacks
        now = time.monotonic()
        then, steps, undrafted, fell_back, faults = self._reported
        counts = (totals.steps, totals.undrafted, sum(fallbacks.values()), self._faults.total())
        self._reported = (now, *counts)
        age_s = np.inf
        if self._newest_ns:
            age_s = (self.get_clock().now().nanoseconds - self._newest_ns) / NANOSECONDS
        values: dict[str, object] = {
            "active": self._active,
            "link": link.label,
            "trouble": self._verifier.trouble,
            "steps": totals.steps,
            "rate_hz": f"{(totals.steps - steps) / (now - then):.1f}",
            "transmission_rate": _share(totals.transmitted, totals.steps),
            "acceptance": _share(totals.kept, totals.verified),
            "repeated": totals.repeated,
            "undrafted": totals.undrafted,
            "observation_age_s": f"{age_s:.3f}",
            "link.rtt_ms": f"{estimate.rtt_ms:.3f}",
            "link.loss": f"{estimate.loss:.3f}",
            "link.misses": f"{estimate.misses:.3f}",
            "link.goodput_bytes_s": f"{estimate.goodput_bytes_s:.0f}",
            **{f"fallbacks.{reason}": count for reason, count in fallbacks.items()},
            **{f"ignored.{name}": count for name, count in self._faults.items()},
            **{f"missed.{name}": count for name, count in self._missed.items()},
            "enabled": self._commander.enabled,
            "stopped": self._commander.guard.stopped,
            **{f"safety.{why.name.lower()}": count for why, count in self._commander.guard.counts.items()},
        }
        if self._refusal or link is Link.MISMATCHED:
            return Health(DiagnosticStatus.ERROR, self._refusal or self._verifier.trouble, values)
        if not self._active:
            return Health(DiagnosticStatus.OK, "inactive", values)
        if totals.undrafted > undrafted:
            return Health(DiagnosticStatus.ERROR, "no sound action for an observation, no command", values)
        if self._faults.total() > faults:
            return Health(DiagnosticStatus.WARN, "input ignored", values)
        if self._commander.guard.stopped:
            return Health(DiagnosticStatus.WARN, "held: told to stop", values)
        if not self._commander.enabled:
            return Health(DiagnosticStatus.WARN, "held: not enabled", values)
        if now - self._heard > NO_OBSERVATION_S:
            return Health(DiagnosticStatus.ERROR, "no observation", values)
        if self._loop.fallback.withholds:
            return Health(DiagnosticStatus.ERROR, "held: no answer of the target", values)
        if sum(fallbacks.values()) > fell_back:
            return Health(DiagnosticStatus.WARN, "drafts executed without the target's answer", values)
        return Health(DiagnosticStatus.OK, "stepping", values)


def _refusing(change_state: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Answer a transition that the present state does not have with False; rclpy would end the process."""

    def answer(request: Any, response: Any) -> Any:
        try:
            return change_state(request, response)
        except RuntimeError:  # rclpy's RCLError is one
            response.success = False
            return response

    return answer


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "nan"


def executor_of(node: DraftPolicyNode) -> UrgentExecutor:
    """Return the executor that serves the control loop before anyone else."""
    return UrgentExecutor(node, lambda: node.urgent)


def started() -> DraftPolicyNode:
    """Make the node; with `autostart`, configured and active.

    Raises:
        ParameterError: it cannot be; the node has said why.
    """
    node = DraftPolicyNode()
    if node.get_parameter("autostart").value:
        for transition in (node.trigger_configure, node.trigger_activate):
            if transition() is not TransitionCallbackReturn.SUCCESS:
                raise ParameterError("autostart: the node cannot be configured and activated, as it has said")
    return node


def main() -> None:
    """Run the node as a process."""
    sys.exit(
        run(
            started,
            __doc__ or "",
            TABLE,
            make_executor=executor_of,
            last_words=DraftPolicyNode.hold_still,
        )
    )


if __name__ == "__main__":
    main()

"""The robot's node: drafts an action for every observation, asks the target where the gate says so.

Subscribes `joint_states` (sensor_msgs/JointState) and `task_state` (adahi_msgs/TaskState); publishes
`command` (trajectory_msgs/JointTrajectory), `draft_status` (adahi_msgs/DraftStatus) and
/diagnostics; calls `verify_draft` and `describe_target`.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from adahi_msgs.msg import DraftStatus, TaskState
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from adahi_ros.nodes.control_loop import ControlLoop
from adahi_ros.nodes.diagnostics import DiagnosticsPublisher, Health
from adahi_ros.nodes.messages import NANOSECONDS, to_command, to_status
from adahi_ros.nodes.observations import InputError, Observation, ObservationInput
from adahi_ros.nodes.parameters import LARGEST_INTEGER, Parameter, ParameterError, Parameters
from adahi_ros.nodes.policies import policy_from, policy_parameters
from adahi_ros.nodes.process import run
from adahi_ros.nodes.verifier_client import Link, VerifierClient
from adahi_ros.policy.interface import PolicySpec
from adahi_ros.speculation.controller import Controller, ControllerConfig
from adahi_ros.speculation.deviation import NORMALIZATIONS
from adahi_ros.speculation.gates import GATES, Gate

STATUS_DEPTH = 100  # for a recorder that was busy, or came a moment late
WARNING_PERIOD_S = 1.0

TABLE = (
    *policy_parameters("ball/draft"),
    Parameter("seed", 0, "Seed of the draft's and the gate's draws", 0, LARGEST_INTEGER),
    Parameter("robot_id", "robot", "Names this robot's stream of random draws at the verifier"),
    Parameter(
        "joint_names",
        ["plate_roll_joint", "plate_pitch_joint"],
        "Joints that the policy observes and commands, in its order",
    ),
    Parameter(
        "control_rate_hz", 20.0, "Control steps per second; a command is to be reached in one", 0.1, 1000.0
    ),
    Parameter("gate.name", "deviation", "Scores the drafts", choices=tuple(GATES), live=True),
    Parameter("gate.threshold", 1.0, "A draft with a score above it is sent to the target", live=True),
    Parameter("deviation.smoothing", 0.5, "Weight of the newest action in the moving average", 1e-3, 1.0),
    Parameter(
        "deviation.normalization", "std", "Unit of the action deviation", choices=tuple(NORMALIZATIONS)
    ),
    Parameter("draft_temperature", 1.0, "Of the draft's code distributions", 1e-3, 100.0, live=True),
    Parameter(
        "deadline_s", 0.03, "For the target's answer; past it the draft is executed", 1e-3, 60.0, live=True
    ),
    Parameter("verifier_wait_s", 5.0, "How long to wait for a verifier before the first step", 0.0, 3600.0),
    Parameter(
        "max_skew_s",
        0.0,
        "Allowed between the stamps of joint_states and task_state. 0 suits a simulator, which stamps "
        "them alike; where they are measured apart, half a control period",
        0.0,
        10.0,
    ),
    Parameter("max_age_s", 0.2, "Of an observation when it arrives; an older one is ignored", 1e-3, 3600.0),
)


def controller_config(values: dict[str, Any]) -> ControllerConfig:
    """Return how drafts are made and judged.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """
    return ControllerConfig(
        Gate(values["gate.name"], values["gate.threshold"]),
        values["deviation.smoothing"],
        values["deviation.normalization"],
        values["draft_temperature"],
    )


def check_sizes(spec: PolicySpec, joint_names: list[str]) -> None:
    """Check that a policy observes and commands as many joints as are named.

    Raises:
        ParameterError: it does not.
    """
    if len(joint_names) != spec.action_dim or len(joint_names) > spec.observation_dim:
        raise ParameterError(
            f"joint_names: {joint_names}, must be {spec.action_dim}, the size of the policy's action"
        )


class DraftPolicyNode(LifecycleNode):
    """See the module. A step begins when a joint state and a task state of one time are there."""

    def __init__(self, **options: Any) -> None:
        super().__init__("draft_policy", **options)
        self._declared = Parameters(self, TABLE)
        self._active = False
        self._service_change_state.callback = _refusing(self._service_change_state.callback)

    # Lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load the policy and open the topics and services."""
        try:
            values = self._declared.read()
            policy = policy_from(values)
            check_sizes(policy.spec, values["joint_names"])
            controller = Controller(policy, controller_config(values))
        except ValueError as error:
            self.get_logger().error(f"cannot be configured: {error}")
            return TransitionCallbackReturn.FAILURE
        except Exception:  # noqa: BLE001  rclpy would end the transition without a word
            self.get_logger().error(f"cannot be configured: {sys.exc_info()[1]!r}")
            return TransitionCallbackReturn.FAILURE
        self._values = values
        self._inputs = ObservationInput(
            values["joint_names"],
            policy.spec.observation_dim - len(values["joint_names"]),
            policy.spec.goal_dim,
            values["max_skew_s"],
            values["max_age_s"],
        )
        self._open_topics()
        self._verifier = VerifierClient(self, policy, self._on_link)
        self._loop = ControlLoop(
            controller,
            self._verifier,
            values["robot_id"],
            values["seed"],
            values["deadline_s"],
            self._publish_command,
            lambda record: self._status_publisher.publish(to_status(record)),
        )
        self._forget()
        self._refusal = ""
        self._declared.frozen = True
        self.get_logger().info(
            f"draft policy of {policy.spec.parameters} parameters, tokenizer {policy.decoder.fingerprint}"
        )
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Look for a verifier, then begin to step."""
        self._forget()
        self._refusal = ""
        self._wait_until = time.monotonic() + self._values["verifier_wait_s"]
        self._verifier.start()
        self._active = True
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Send no more commands, not even for a step that waits for its answer."""
        self._active = False
        self._verifier.stop()
        self._loop.stop()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close everything; parameters can be set again."""
        self._close()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close everything."""
        if self._declared.frozen:
            self._close()
        return TransitionCallbackReturn.SUCCESS

    def _open_topics(self) -> None:
        overridable = QoSOverridingOptions.with_default_policies
        self._command_publisher = self.create_lifecycle_publisher(
            JointTrajectory, "command", QoSProfile(depth=1), qos_overriding_options=overridable()
        )
        kept = QoSProfile(depth=STATUS_DEPTH, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._status_publisher = self.create_lifecycle_publisher(
            DraftStatus, "draft_status", kept, qos_overriding_options=overridable()
        )
        self._inputs_open = [
            self.create_subscription(
                kind, topic, callback, qos_profile_sensor_data, qos_overriding_options=overridable()
            )
            for kind, topic, callback in (
                (JointState, "joint_states", self._on_joint_states),
                (TaskState, "task_state", self._on_task_state),
            )
        ]
        self._diagnostics = DiagnosticsPublisher(self, self._values["robot_id"], self._health)

    def _close(self) -> None:
        self._active = False
        self._verifier.destroy()
        self._diagnostics.destroy()
        for subscription in self._inputs_open:
            self.destroy_subscription(subscription)
        for publisher in (self._command_publisher, self._status_publisher):
            self.destroy_lifecycle_publisher(publisher)
        self._declared.frozen = False

    def _forget(self) -> None:
        self._inputs.clear()
        self._faults: Counter[str] = Counter()
        self._newest_ns = 0
        self._reported = (time.monotonic(), 0, 0, 0)

    # A step

    def _on_joint_states(self, message: JointState) -> None:
        if self._active:
            self._take(self._inputs.add_joints, message)

    def _on_task_state(self, message: TaskState) -> None:
        if self._active:
            self._take(self._inputs.add_state, message)

    def _take(self, add: Any, message: JointState | TaskState) -> None:
        try:
            observation: Observation | None = add(message, self.get_clock().now().nanoseconds)
        except InputError as error:
            self._faults[error.field] += 1
            self._warn(f"ignored: {error}")
            return
        if observation is None:
            return
        self._newest_ns = observation.stamp_ns
        if self._verifier.link is Link.ABSENT and self._loop.totals.steps == 0:
            if time.monotonic() < self._wait_until:
                return
            self.get_logger().warning("no verifier: drafts are executed until there is one")
        if self._declared.changed:
            self._declared.changed = False
            values = self._declared.read()
            self._loop.controller.config = controller_config(values)
            self._loop.deadline_s = values["deadline_s"]
        self._loop.observe(observation)

    def _publish_command(self, action: np.ndarray, stamp_ns: int) -> None:
        period_s = 1.0 / self._values["control_rate_hz"]
        self._command_publisher.publish(to_command(self._values["joint_names"], action, period_s, stamp_ns))

    def _on_link(self) -> None:
        link, mismatch = self._verifier.link, self._verifier.mismatch
        if link is Link.READY:
            self.get_logger().info(link.value)
        elif link is Link.ABSENT:
            self.get_logger().warning(link.value)
        elif self._loop.totals.steps > 0:
            self.get_logger().error(f"{link.value}, drafts are executed: {mismatch}")
        else:
            self._refusal = f"refused to start, {link.value}: {mismatch}"
            self.get_logger().error(self._refusal)
            self.trigger_deactivate()

    def _warn(self, text: str) -> None:
        self.get_logger().warning(text, throttle_duration_sec=WARNING_PERIOD_S)

    # Diagnostics

    def _health(self) -> Health:
        totals, link = self._loop.totals, self._verifier.link
        now = time.monotonic()
        then, steps, fallbacks, faults = self._reported
        self._reported = (now, totals.steps, totals.fallbacks.total(), self._faults.total())
        age_s = np.inf
        if self._newest_ns:
            age_s = (self.get_clock().now().nanoseconds - self._newest_ns) / NANOSECONDS
        values: dict[str, object] = {
            "active": self._active,
            "link": link.value,
            "steps": totals.steps,
            "rate_hz": f"{(totals.steps - steps) / (now - then):.1f}",
            "transmission_rate": _share(totals.transmitted, totals.steps),
            "acceptance": _share(totals.kept, totals.verified),
            "repeated": totals.repeated,
            "observation_age_s": f"{age_s:.3f}",
            **{f"fallbacks.{reason}": count for reason, count in totals.fallbacks.items()},
            **{f"ignored.{name}": count for name, count in self._faults.items()},
        }
        if self._refusal or link is Link.MISMATCHED:
            return Health(DiagnosticStatus.ERROR, self._refusal or self._verifier.mismatch, values)
        if not self._active:
            return Health(DiagnosticStatus.OK, "inactive", values)
        if self._faults.total() > faults:
            return Health(DiagnosticStatus.WARN, "input ignored", values)
        if age_s > max(1.0, self._values["max_age_s"]):
            return Health(DiagnosticStatus.STALE, "no observation", values)
        if totals.fallbacks.total() > fallbacks:
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


def main() -> None:
    """Run the node as a process."""
    sys.exit(run(DraftPolicyNode))


if __name__ == "__main__":
    main()

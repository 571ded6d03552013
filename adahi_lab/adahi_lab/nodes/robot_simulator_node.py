# SPDX-License-Identifier: Apache-2.0
"""Simulates a robot: a task behind the topics of a robot.

Publishes `joint_states` (sensor_msgs/JointState), `task_state` (adahi_msgs/TaskState),
`episode_result` (adahi_msgs/EpisodeResult) and, if the task has a camera, `camera/image_raw`
(sensor_msgs/Image). Subscribes `command`, with the type of `command_interface`, or the action topics of a
`contract`. In lockstep the world waits for the command to its state. In real time it waits only at the
start of an episode, and moves positions with a model of joint_trajectory_controller, which publishes its set
points on `controller_reference` (sensor_msgs/JointState). With `demonstrate` the task's expert acts, and
`command` is published for a recorder.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from adahi_msgs.msg import EpisodeResult, TaskState
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.task import Future
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import Header

from adahi_lab.evaluation.run_record import EpisodeRecord
from adahi_lab.nodes.command_inputs import INTERFACES, CommandInputs, Input, inputs_of
from adahi_lab.nodes.task_state import to_task_state
from adahi_lab.tasks import TASKS, make, make_expert
from adahi_lab.tasks.commanded import CommandedTask
from adahi_lab.tasks.demonstrations import Demonstrator
from adahi_lab.tasks.task_interface import has_camera
from adahi_ros.contract.commanded import Commanded
from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.contract.sinks import message_sink
from adahi_ros.contract.sinks.interface import Command
from adahi_ros.contract.sinks.twist import TwistSink
from adahi_ros.core.command_curve import Curve
from adahi_ros.core.registry import LARGEST_INTEGER
from adahi_ros.nodes.common import messages
from adahi_ros.nodes.common.parameters import ParameterError, Parameters, group, parameter
from adahi_ros.nodes.common.qos import message_type, new_message
from adahi_ros.nodes.common.spin import run
from adahi_ros.nodes.common.throttled_log import ThrottledLog
from adahi_ros.nodes.common.timers import steady_timer, timer_by

RESULTS_KEPT = 1000
STREAMED_KEPT = 1000  # of a demonstration, for a recorder that DDS has not discovered yet
LAST_WORDS_S = 5.0  # DDS repeats a lost announcement of a node every 3 s
RECORDED_S = 10.0  # DDS resends what a recorder lacks, but detects that only every few seconds
POLL_PERIOD_S = 0.05


@dataclass(frozen=True)
class RobotSimulatorParameters:
    """Parameters of the node."""

    task: str = parameter("ball", f"What is simulated: {', '.join(sorted(TASKS))}, or a YAML file of another")
    seed: int = parameter(0, "Seed of the world's random draws", 0, LARGEST_INTEGER)
    first_episode: int = parameter(0, "Number of the first episode", 0, 2**32 - 1)
    episodes: int = parameter(0, "Episodes before the node ends; 0 for no end", 0, 2**32 - 1)
    command_interface: str = parameter(
        "joint_trajectory", "Message type of command", choices=tuple(INTERFACES)
    )
    twist: TwistSink = group(TwistSink, "command")
    contract: str = parameter(
        "",
        "Contract; its action topics are subscribed; '' for the topic command only",
        optional=True,
    )
    lockstep: bool = parameter(
        False,
        "Step when the command for the current state arrives, not by the clock; safety.hold_after_s "
        "of the robot must be longer than that takes",
    )
    command_timeout_s: float = parameter(
        0.25, "In lockstep, publish the state again after this time, s", 1e-3, 60.0
    )
    max_command_age_s: float = parameter(
        0.15,
        "In real time, hold the joints still if the newest command is older than this, s",
        1e-3,
        60.0,
    )
    demonstrate: bool = parameter(
        False, "Let the task's expert act, and publish command as a teleoperator would"
    )
    action_noise: float = parameter(
        0.1,
        "Noise that a demonstration executes and does not publish: standard deviation as a share of "
        "half the range",
        0.0,
        1.0,
    )
    speed: float = parameter(
        1.0,
        "Simulated seconds per second; if not 1, the simulator publishes /clock",
        1e-3,
        1e3,
    )
    wait_for_subscribers: int = parameter(
        0,
        "Subscribers of each observed topic, and of a demonstration's command, before the first state",
        0,
        100,
    )
    subscribers_wait_s: float = parameter(30.0, "How long to wait for these subscribers, s", 0.0, 3600.0)


class RobotSimulatorNode(Node):
    """See the module.

    Args:
        commanded: makes the `CommandedTask`, with its arguments.
        options: as `Node`.

    Raises:
        ParameterError: names the parameter, its value and what is allowed.
    """

    def __init__(self, commanded: Callable[..., CommandedTask] = CommandedTask, **options: Any) -> None:
        super().__init__("robot_simulator", **options)
        parameters = Parameters(self, RobotSimulatorParameters)
        self._values = values = parameters.read()
        parameters.frozen = True
        if values.lockstep and (values.demonstrate or values.speed != 1.0):
            raise ParameterError(
                f"lockstep: True, must be false with demonstrate ({values.demonstrate}) or a speed "
                f"({values.speed:g}) that is not 1"
            )
        if values.contract and values.demonstrate:
            raise ParameterError(f"contract: {values.contract!r}, must be '' with demonstrate")
        demonstrator, frame_id = None, values.twist.frame_id
        try:
            self._task = make(values.task)
            spec = self._task.spec
            if values.demonstrate:
                demonstrator = Demonstrator(make_expert(values.task), spec, values.action_noise)
            what = Commanded.alike(spec.commanded, spec.command_field)
            self._interface = message_sink(INTERFACES[values.command_interface], what, {"frame_id": frame_id})
        except (ValueError, OSError) as error:
            raise ParameterError(str(error)) from None
        inputs: list[Input] = [("command", what, self._interface)]
        if values.contract:
            inputs = inputs_of(values.contract, spec, frame_id)
        self._ignored = 0
        self._throttled = ThrottledLog(self)
        self._over: list[EpisodeRecord] = []
        self.finished: Future = Future()
        """Done when the last episode is over and its result delivered."""
        self._time_ns = 0
        self._clock_out = None
        if values.speed != 1.0:
            self._clock_out = self.create_publisher(ClockMessage, "/clock", QoSProfile(depth=1))
        numbers = values.first_episode, values.episodes
        how = values.lockstep, values.max_command_age_s, self._now(), demonstrator
        self._robot = commanded(self._task, values.seed, *numbers, *how)
        self._streams: list[Publisher] = []
        self._image_out = None
        if has_camera(self._task):
            self._image_out = self._stream(Image, "camera/image_raw")
        self._joints_out = self._stream(JointState, "joint_states")
        self._state_out = self._stream(TaskState, "task_state")
        kept = QoSProfile(depth=RESULTS_KEPT, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._result_out = self.create_publisher(EpisodeResult, "episode_result", kept)
        self._reference_out = None
        if self._robot.controller is not None:
            self._reference_out = self.create_publisher(
                JointState, "controller_reference", QoSProfile(depth=10)
            )
        if values.demonstrate:
            self._command_out = self._stream(message_type(self._interface.kind), "command")
        else:
            CommandInputs(self, inputs, spec.commanded, self._on_action, self._on_fault)
        if values.wait_for_subscribers:
            self._wait_for_subscribers()
        else:
            self._begin()

    def _stream(self, kind: type, topic: str) -> Publisher:
        """Open a publisher of recorded topics: sensor data, but reliable in a demonstration."""
        shown = self._values.demonstrate
        qos = QoSProfile(depth=STREAMED_KEPT) if shown else copy(qos_profile_sensor_data)
        publisher = self.create_publisher(
            kind, topic, qos, qos_overriding_options=QoSOverridingOptions.with_default_policies()
        )
        self._streams.append(publisher)
        return publisher

    def _wait_for_subscribers(self) -> None:
        wanted = self._values.wait_for_subscribers

        def there() -> bool:
            return all(publisher.get_subscription_count() >= wanted for publisher in self._streams)

        def begin() -> None:
            if not there():
                counts = {stream.topic_name: stream.get_subscription_count() for stream in self._streams}
                self.get_logger().warning(
                    f"wait_for_subscribers: {wanted}, begins without, after "
                    f"{self._values.subscribers_wait_s:g} s there are {counts}"
                )
            self._begin()

        self._poll(there, self._values.subscribers_wait_s, begin)

    def _poll(self, done: Callable[[], bool], limit_s: float, then: Callable[[], None]) -> None:
        """Check a condition repeatedly; continue when it holds, or at the limit."""
        deadline = time.monotonic() + limit_s

        def check() -> None:
            if done() or time.monotonic() > deadline:
                self.destroy_timer(timer)
                then()

        timer = steady_timer(self, POLL_PERIOD_S, check)

    def _begin(self) -> None:
        values = self._values
        self._started_s = time.monotonic()
        if values.lockstep:
            self._timer = steady_timer(self, values.command_timeout_s, self._publish_state)
        elif self._clock_out is None:
            self._timer = timer_by(self.get_clock(), self, self._period_s, self._tick)
        else:
            self._timer = steady_timer(self, self._period_s / values.speed, self._tick)
        self._pass_time()
        self._publish_state()

    @property
    def _period_s(self) -> float:
        return 1.0 / self._task.spec.control_rate_hz

    def _now(self) -> int:
        return self.get_clock().now().nanoseconds if self._clock_out is None else self._time_ns

    def _pass_time(self) -> None:
        """Advance the simulator's own clock by a control period, if it has one."""
        if self._clock_out is not None:
            self._time_ns += round(self._period_s * NANOSECONDS)
            self._clock_out.publish(ClockMessage(clock=messages.to_stamp(self._time_ns)))

    def _publish_state(self) -> None:
        """Publish the current state; a repeated state gets a new stamp."""
        now = self._now()
        task, spec, robot = self._task, self._task.spec, self._robot
        if self._image_out is not None:
            self._image_out.publish(messages.to_image(task.images[0], now))  # type: ignore[attr-defined]
        # If a camera replaces the state, the state is empty.
        with_state = self._image_out is None or spec.images_for_target
        state = task.state[0] if with_state else np.zeros(0)
        self._joints_out.publish(
            messages.to_joint_state(spec.joint_names, task.joint_positions[0], task.joint_velocities[0], now)
        )
        self._state_out.publish(
            to_task_state(state, task.goal[0], robot.episode, robot.step, now, spec.frame_id)
        )
        wanted = robot.show(now)
        if wanted is not None:
            command = Command(spec.commanded, spec.command_field, wanted, self._period_s, now)
            self._command_out.publish(self._interface.message(command, new_message))

    def _on_fault(self, fault: ValueError) -> None:
        if self._robot.listens:
            self._ignored += 1
            self._throttled.warning("command", f"ignored command ({self._ignored} so far): {fault}")

    def _on_action(self, action: np.ndarray, stamp_ns: int | None, curve: Curve | None) -> None:
        if not self._robot.listens:
            return
        try:
            moves = self._robot.take(action, stamp_ns, self._now(), curve)
        except ValueError as fault:
            self._on_fault(fault)
            return
        if moves:
            self._timer.reset()
            self._advance(action)

    def _tick(self) -> None:
        """One control period of real time."""
        self._pass_time()
        motion = self._robot.motion(self._now())
        if motion is None:
            self._publish_state()
            return
        if motion.late_s is not None:
            self._throttled.warning(
                "late",
                f"no command: the newest is {motion.late_s:.3f} s old, allowed are "
                f"{self._values.max_command_age_s:g} s; holding still",
            )
        if self._reference_out is not None and motion.velocities is not None:
            names = self._task.spec.commanded
            self._reference_out.publish(
                messages.to_joint_state(names, motion.action, motion.velocities, self._now())
            )
        self._advance(motion.action)

    def _advance(self, action: np.ndarray) -> None:
        if self._robot.advance(action):
            self._tell_result()
            self._log_peaks()
            if not self._robot.begin_next(self._now()):
                self._say_goodbye()
                return
        self._publish_state()

    def _tell_result(self) -> None:
        record = EpisodeRecord(self._robot.episode, self._robot.step, self._robot.success)
        self._over.append(record)
        header = Header(stamp=messages.to_stamp(self._now()))
        counts = {"episode_id": record.episode, "steps": record.steps, "success": record.success}
        self._result_out.publish(EpisodeResult(header=header, **counts))
        outcome = "success" if record.success else "failure"
        self.get_logger().info(f"episode {record.episode}: {outcome} after {record.steps} steps")

    def _log_peaks(self) -> None:
        """Log the largest speed and acceleration that the episode's commands asked of the controller."""
        controller = self._robot.controller
        if controller is not None:
            self.get_logger().info(
                f"episode {self._robot.episode}: commands asked the controller for at most "
                f"{controller.peak_speed.max():.3g} rad/s and "
                f"{controller.peak_acceleration.max():.3g} rad/s^2"
            )

    def _say_goodbye(self) -> None:
        """Stay until a subscriber has the results, or there is none.

        Subscribers are expected from the first state on. Waiting longer would only cause the robot's node to
        miss its observations and warn.
        """
        self.destroy_timer(self._timer)
        successes, steps = sum(each.success for each in self._over), sum(each.steps for each in self._over)
        self.get_logger().info(f"over: {successes} of {len(self._over)} episodes succeeded, {steps} steps")
        limit_s = RECORDED_S if self._values.demonstrate else LAST_WORDS_S

        def delivered() -> bool:
            if self._result_out.get_subscription_count() == 0:
                return time.monotonic() > self._started_s + limit_s
            streams = (self._result_out, *self._streams)
            return all(stream.wait_for_all_acked(Duration(seconds=0)) for stream in streams)

        self._poll(delivered, limit_s, lambda: self.finished.set_result(None))


def main() -> None:
    """Run the node as a process."""
    sys.exit(run(RobotSimulatorNode, __doc__ or "", RobotSimulatorParameters, lambda node: node.finished))


if __name__ == "__main__":
    main()

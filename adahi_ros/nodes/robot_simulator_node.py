"""The robot's stand-in: a simulated task behind the topics of a robot.

Publishes `joint_states` (sensor_msgs/JointState), `task_state` (adahi_msgs/TaskState) and
`episode_result` (adahi_msgs/EpisodeResult); subscribes `command` (trajectory_msgs/JointTrajectory).
In lockstep the world waits for the command that answers its state. In real time it does so only at
the start of an episode.
"""

from __future__ import annotations

import sys
import time
from copy import copy
from typing import Any

import numpy as np
from adahi_msgs.msg import EpisodeResult, TaskState
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.task import Future
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from adahi_ros.nodes.messages import (
    NANOSECONDS,
    from_stamp,
    to_episode_result,
    to_joint_state,
    to_task_state,
)
from adahi_ros.nodes.parameters import LARGEST_INTEGER, Parameter, ParameterError, Parameters
from adahi_ros.nodes.spin import run
from adahi_ros.speculation.records import EpisodeRecord
from adahi_ros.tasks import TASKS, make

RESULTS_KEPT = 1000
LAST_WORDS_S = 2.0
GOODBYE_PERIOD_S = 0.05
WARNING_PERIOD_S = 1.0

TABLE = (
    Parameter("task", "ball", f"What is simulated: {', '.join(sorted(TASKS))}, or a YAML file of another"),
    Parameter("seed", 0, "Seed of the world's draws", 0, LARGEST_INTEGER),
    Parameter("first_episode", 0, "Number of the first episode", 0, 2**32 - 1),
    Parameter("episodes", 0, "How many to run before the node ends; 0 for no end", 0, 2**32 - 1),
    Parameter(
        "lockstep",
        False,
        "Step when the command for the current state arrives, however long that takes, and not by the clock",
    ),
    Parameter("command_timeout_s", 0.25, "In lockstep, after it the state is published again", 1e-3, 60.0),
    Parameter(
        "max_command_age_s",
        0.15,
        "In real time, from the observation that a command answers; with none so new the joints hold still",
        1e-3,
        60.0,
    ),
)


class RobotSimulatorNode(Node):
    """See the module.

    Raises:
        ParameterError: names the parameter, its value and what is allowed.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("robot_simulator", **options)
        parameters = Parameters(self, TABLE)
        self._values = values = parameters.read()
        parameters.frozen = True
        try:
            self._task = make(values["task"])
        except (ValueError, OSError) as error:
            raise ParameterError(str(error)) from None
        self._episode = values["first_episode"]
        self._left = values["episodes"]
        self._ignored = 0
        self._over = False
        self.finished: Future = Future()
        """Done when the last episode is over and its result delivered."""
        overridable = QoSOverridingOptions.with_default_policies
        self._joints_out = self.create_publisher(
            JointState, "joint_states", copy(qos_profile_sensor_data), qos_overriding_options=overridable()
        )
        self._state_out = self.create_publisher(
            TaskState, "task_state", copy(qos_profile_sensor_data), qos_overriding_options=overridable()
        )
        kept = QoSProfile(depth=RESULTS_KEPT, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._result_out = self.create_publisher(EpisodeResult, "episode_result", kept)
        self.create_subscription(
            JointTrajectory,
            "command",
            self._on_command,
            QoSProfile(depth=1),
            qos_overriding_options=overridable(),
        )
        self._start_episode()
        if values["lockstep"]:
            self._timer = self.create_timer(values["command_timeout_s"], self._publish_state)
        else:
            self._timer = self.create_timer(1.0 / self._task.spec.control_rate_hz, self._tick)
        self._publish_state()

    def _start_episode(self) -> None:
        self._task.reset(self._values["seed"], [self._episode])
        self._step = 0
        self._command: tuple[int, np.ndarray] | None = None
        self._episode_start = self.get_clock().now().nanoseconds
        self._first_stamp = self._last_stamp = 0

    def _publish_state(self) -> None:
        """Publish the current state; stamped anew where it is published again."""
        now = self.get_clock().now().nanoseconds
        self._last_stamp = now
        self._first_stamp = self._first_stamp or now
        task, names = self._task, self._task.spec.joint_names
        self._joints_out.publish(
            to_joint_state(names, task.joint_positions[0], task.joint_velocities[0], now)
        )
        frame = task.spec.frame_id
        self._state_out.publish(
            to_task_state(task.state[0], task.goal[0], self._episode, self._step, now, frame)
        )

    def _on_command(self, message: JointTrajectory) -> None:
        if self._over:
            return
        fault = self._fault(message)
        if fault is not None:
            self._ignored += 1
            self.get_logger().warning(
                f"ignored command ({self._ignored} so far): {fault}", throttle_duration_sec=WARNING_PERIOD_S
            )
            return
        spec = self._task.spec
        commanded = dict(
            zip(message.joint_names, getattr(message.points[0], spec.command_field), strict=True)
        )
        action = np.array([commanded[name] for name in spec.commanded])
        stamp = from_stamp(message.header.stamp)
        if not self._values["lockstep"]:
            before = self._episode_start if self._command is None else self._command[0]
            if stamp >= before:
                self._command = (stamp, action)
        elif self._first_stamp <= stamp <= self._last_stamp:  # else it answers a state that is past
            self._timer.reset()
            self._advance(action)

    def _fault(self, message: JointTrajectory) -> str | None:
        names, field = self._task.spec.commanded, self._task.spec.command_field
        if sorted(message.joint_names) != sorted(names):
            return f"joint_names: {list(message.joint_names)}, must be {list(names)}"
        if not message.points:
            return "points: none, must be at least one"
        action = np.asarray(getattr(message.points[0], field))
        if action.shape != (len(names),):
            return f"points[0].{field}: {len(action)} values, expected {len(names)}"
        if not np.isfinite(action).all():
            return f"points[0].{field}: {action.tolist()}, must be finite"
        ahead_s = (from_stamp(message.header.stamp) - self._last_stamp) / NANOSECONDS
        if ahead_s > 0:
            return f"header.stamp: {ahead_s:.3f} s after the newest state, must be that of a state"
        return None

    def _tick(self) -> None:
        """One control period of real time; an episode's first begins when a command has come."""
        if self._command is None:
            self._publish_state()
            return
        stamp, action = self._command
        age_s = (self.get_clock().now().nanoseconds - stamp) / NANOSECONDS
        if age_s > self._values["max_command_age_s"]:
            self.get_logger().warning(
                f"no command: the newest answers an observation {age_s:.3f} s old, allowed are "
                f"{self._values['max_command_age_s']:g} s; holding still",
                throttle_duration_sec=WARNING_PERIOD_S,
            )
            action = self._standing_still()
        self._advance(action)

    def _standing_still(self) -> np.ndarray:
        """Return the joints' own positions where these are commanded, else no motion."""
        spec, joints = self._task.spec, self._task.joint_positions[0]
        return joints if spec.command_field == "positions" else np.zeros(spec.action_dim)

    def _advance(self, action: np.ndarray) -> None:
        self._task.step(action[None])
        self._step += 1
        self._first_stamp = 0
        if self._task.done[0]:
            self._end_episode()
        if not self._over:
            self._publish_state()

    def _end_episode(self) -> None:
        record = EpisodeRecord(self._episode, self._step, bool(self._task.success[0]))
        self._result_out.publish(to_episode_result(record, self.get_clock().now().nanoseconds))
        outcome = "success" if record.success else "failure"
        self.get_logger().info(f"episode {record.episode}: {outcome} after {record.steps} steps")
        if self._left == 1:
            self._say_goodbye()
            return
        self._left = max(0, self._left - 1)
        self._episode += 1
        self._start_episode()

    def _say_goodbye(self) -> None:
        """Stay until somebody has the results, or nobody seems to want them."""
        self._over = True
        self.destroy_timer(self._timer)
        deadline = time.monotonic() + LAST_WORDS_S

        def look() -> None:
            heard = self._result_out.get_subscription_count() > 0
            delivered = heard and self._result_out.wait_for_all_acked(Duration(seconds=0))
            if delivered or time.monotonic() > deadline:
                self.destroy_timer(self._timer)
                self.finished.set_result(None)

        self._timer = self.create_timer(GOODBYE_PERIOD_S, look)


def main() -> None:
    """Run the node as a process."""
    sys.exit(run(RobotSimulatorNode, __doc__ or "", TABLE, lambda node: node.finished))


if __name__ == "__main__":
    main()

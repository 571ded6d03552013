# SPDX-License-Identifier: Apache-2.0
"""A robot for tests: publishes observations at a steady rate, and logs them and the commands it receives.

Publishes `joint_states` (sensor_msgs/JointState) and `task_state` (adahi_msgs/TaskState), with smooth motions
that depend on seed, episode and step. Subscribes `command` (trajectory_msgs/JointTrajectory) and
`draft_status` (adahi_msgs/DraftStatus). Configures and activates the node `draft_policy` while it is silent.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from adahi_msgs.msg import DraftStatus, TaskState
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.task import Future
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from adahi_lab.nodes.task_state import to_task_state
from adahi_lab.tasks.motions import Motions, ahead_s
from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.core.registry import LARGEST_INTEGER
from adahi_ros.nodes.common.messages import from_stamp, from_status, to_joint_state, to_stamp
from adahi_ros.nodes.common.parameters import Parameters, parameter
from adahi_ros.nodes.common.spin import run
from adahi_ros.nodes.common.timers import steady_timer

DEPTH = 1000  # avoids losses before the log
SILENT_S = 1.0  # silence after which the draft policy is configured and activated
CLOCK_HZ = 100.0


@dataclass(frozen=True)
class RecordingRobotParameters:
    """Parameters of the node."""

    log: str = parameter("robot.jsonl", "File to write, one JSON object per line")
    seed: int = parameter(0, "Seed of the motions", 0, LARGEST_INTEGER)
    rate_hz: float = parameter(30.0, "Observations per second", 0.1, 1000.0)
    episode_steps: int = parameter(300, "Observations per episode", 1, 2**32 - 1)
    joint_names: tuple[str, ...] = parameter((), "The leading entries of an observation; '' for none")
    state_dim: int = parameter(4, "How many entries follow", 0, 1000)
    goal_dim: int = parameter(2, "Entries of the goal", 0, 1000)
    amplitude: float = parameter(0.1, "Of the motions, in the units of the task", 0.0, 1e6)
    clock_jump_s: float = parameter(
        0.0,
        "If not 0, publish /clock, which is so far ahead in every second jump period, and stamp by it",
        -1e6,
        1e6,
    )
    clock_jump_period_s: float = parameter(3.0, "From one jump of the clock to the next", 0.1, 1e6)


class RecordingRobotNode(Node):
    """See the module. The lines are `shown`, `command` or `record`; `at_s` is of the monotonic clock."""

    def __init__(self, **options: Any) -> None:
        super().__init__("recording_robot", **options)
        parameters = Parameters(self, RecordingRobotParameters)
        self._values = values = parameters.read()
        parameters.frozen = True
        self._joint_names = values.joint_names
        sizes = len(self._joint_names), values.state_dim, values.goal_dim
        self._motions = Motions(values.seed, *sizes, values.amplitude, values.rate_hz, values.episode_steps)
        self._log = Path(values.log).open("w", buffering=1)  # noqa: SIM115  as long as the node
        self._started = time.monotonic()
        self._commanded_s = -np.inf
        self._shown = 0
        self._requested: list[Future] = []
        deep = QoSProfile(depth=DEPTH)
        self._joints_out = self.create_publisher(JointState, "joint_states", deep)
        self._state_out = self.create_publisher(TaskState, "task_state", deep)
        self.create_subscription(JointTrajectory, "command", self._on_command, deep)
        self.create_subscription(DraftStatus, "draft_status", self._on_status, deep)
        # DDS announces a process's endpoints in order: a draft policy that replies to this client knows the
        # subscriptions above, so none of its steps is lost.
        self._change_state = self.create_client(ChangeState, "draft_policy/change_state")
        steady_timer(self, 1.0 / values.rate_hz, self._show)
        steady_timer(self, SILENT_S, self._look_after_draft)
        if values.clock_jump_s:
            self._clock_out = self.create_publisher(ClockMessage, "/clock", deep)
            steady_timer(self, 1.0 / CLOCK_HZ, self._tell_time)

    def _write(self, kind: str, values: Mapping[str, object]) -> None:
        self._log.write(json.dumps({kind: values}) + "\n")

    def _now(self) -> int:
        passed_s, values = time.monotonic() - self._started, self._values
        jumped_s = ahead_s(passed_s, values.clock_jump_s, values.clock_jump_period_s)
        return time.time_ns() + round(jumped_s * NANOSECONDS)

    def _tell_time(self) -> None:
        self._clock_out.publish(ClockMessage(clock=to_stamp(self._now())))

    def _show(self) -> None:
        episode, step = self._motions.numbers(self._shown)
        self._shown += 1
        positions, state, goal = self._motions.at(episode, step)
        stamp = self._now()
        shown = {
            "at_s": time.monotonic(),
            "stamp_ns": stamp,
            "episode": episode,
            "step": step,
            "values": [*positions.tolist(), *state.tolist()],
            "goal": goal.tolist(),
        }
        self._joints_out.publish(
            to_joint_state(self._joint_names, positions, np.zeros(len(positions)), stamp)
        )
        self._state_out.publish(to_task_state(state, goal, episode, step, stamp))
        self._write("shown", shown)

    def _on_command(self, message: JointTrajectory) -> None:
        self._commanded_s = time.monotonic()
        stamp, action = from_stamp(message.header.stamp), list(message.points[0].positions)
        self._write("command", {"at_s": self._commanded_s, "stamp_ns": stamp, "action": action})

    def _on_status(self, message: DraftStatus) -> None:
        self._write("record", asdict(from_status(message)))

    def _look_after_draft(self) -> None:
        """Request both transitions in turn; the node refuses those its state does not allow."""
        while self._requested:
            self._change_state.remove_pending_request(self._requested.pop())
        if time.monotonic() - self._commanded_s < SILENT_S or not self._change_state.service_is_ready():
            return
        configured = self._ask(Transition.TRANSITION_CONFIGURE)
        configured.add_done_callback(lambda reply: self._ask(Transition.TRANSITION_ACTIVATE))

    def _ask(self, wanted: int) -> Future:
        request = ChangeState.Request(transition=Transition(id=wanted))
        self._requested.append(self._change_state.call_async(request))
        return self._requested[-1]


def main() -> None:
    """Run the node as a process."""
    sys.exit(run(RecordingRobotNode, __doc__ or "", RecordingRobotParameters))


if __name__ == "__main__":
    main()

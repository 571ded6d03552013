# SPDX-License-Identifier: Apache-2.0
"""Asks MoveIt whether the states of a robot's plan are free of collisions.

Subscribes `planned_trajectory` (trajectory_msgs/JointTrajectory), of the robot's node. Calls
`check_state_validity` (moveit_msgs/GetStateValidity), of move_group. Publishes `plan_validity`
(std_msgs/String): `valid`, or why the arm must not go on. The robot's node obeys it where the section
`driver` of its contract names this topic.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from adahi_ros.contract.fields import NANOSECONDS
from adahi_ros.core.texts import abridged
from adahi_ros.nodes.common.parameters import Parameters, parameter
from adahi_ros.nodes.common.qos import message_type
from adahi_ros.nodes.common.spin import run
from adahi_ros.nodes.common.throttled_log import ThrottledLog
from adahi_ros.nodes.common.timers import steady_timer
from adahi_ros.safety.planned_states import VALID, PlannedStates, StateCheck

PLAN, SERVICE = "planned_trajectory", "moveit_msgs/srv/GetStateValidity"
AHEAD_S, LASTS_S = 1.0, 1.0
TOLERANCE = 0.02  # rad or m; the scene's own padding is as large
PERIOD_S = 0.1  # of plan_validity without news
LONGEST = 1024  # points
TEXT_LENGTH = 100  # a driver's values may not be longer
NO_ANSWER_S = 0.3  # then it is asked again


@dataclass(frozen=True)
class SceneCheckerParameters:
    """Parameters of the node."""

    group_name: str = parameter("", "MoveIt's group that is checked; '' for the whole robot", optional=True)
    rate_hz: float = parameter(50.0, "Most states that are checked per second", 1.0, 1000.0)
    patience_s: float = parameter(
        0.5, "How long the arm may go on while MoveIt does not answer, s; 0 for ever", 0.0, 60.0
    )


class SceneCheckerNode(Node):
    """The node. It has one request at a time.

    Args:
        lasts_s: how long a check counts.
        options: of a node.

    Raises:
        ParameterError: names the parameter, its value and what is allowed; or moveit_msgs is not installed.
    """

    def __init__(self, lasts_s: float = LASTS_S, **options: Any) -> None:
        super().__init__("scene_checker", **options)
        parameters = Parameters(self, SceneCheckerParameters)
        self._values = values = parameters.read()
        parameters.frozen = True
        self._kind = message_type(SERVICE)
        self._client = self.create_client(self._kind, "check_state_validity")
        patience_s = values.patience_s or math.inf
        self._states = PlannedStates(AHEAD_S, TOLERANCE, lasts_s, patience_s)
        self._names: list[str] = []
        self._asked: tuple[Future, np.ndarray, float] | None = None
        self._said, self._said_s = "", 0.0
        self._throttled = ThrottledLog(self, period_s=5.0)
        self._out = self.create_publisher(String, "plan_validity", 10)
        self._plans = self.create_subscription(JointTrajectory, PLAN, self._on_plan, 1)
        steady_timer(self, 1.0 / values.rate_hz, self._ask_and_publish)

    def _on_plan(self, message: JointTrajectory) -> None:
        now_s, width = time.monotonic(), len(message.joint_names)
        points = [each for each in message.points[:LONGEST] if width and len(each.positions) == width]
        reached = (each.time_from_start for each in points)
        times_s = np.array([now_s + each.sec + each.nanosec / NANOSECONDS for each in reached])
        self._names = list(message.joint_names)
        states = np.array([each.positions for each in points]).reshape(len(points), width)
        self._states.plan(times_s, states)
        self._ask_and_publish()

    def _ask_and_publish(self) -> None:
        """Take in an answer, ask for the next state, and publish the validity if it is due."""
        now_s = time.monotonic()
        if self._asked is not None and now_s - self._asked[2] > NO_ANSWER_S:
            self._client.remove_pending_request(self._asked[0])
            self._asked = None
            self._throttled.warning("answer", f"{self._client.srv_name}: no answer; is move_group running?")
        if self._asked is None and (state := self._states.unknown(now_s)) is not None:
            request = self._kind.Request(group_name=self._values.group_name)
            request.robot_state.joint_state = JointState(name=self._names, position=state.tolist())
            request.robot_state.is_diff = True  # the other joints are where MoveIt sees them
            future = self._client.call_async(request)
            self._asked = future, state, now_s
            future.add_done_callback(self._on_answer)
        self._say(now_s)

    def _on_answer(self, future: Future) -> None:
        if self._asked is None or future is not self._asked[0]:
            return
        state, self._asked = self._asked[1], None
        answer, now_s = future.result(), time.monotonic()
        touch = sorted({f"{each.contact_body_1} touches {each.contact_body_2}" for each in answer.contacts})
        fault = "" if answer.valid else ", ".join(touch) or "MoveIt allows no such state"
        self._states.checked(StateCheck(state, now_s, abridged(fault, TEXT_LENGTH)))
        self._say(now_s)

    def _say(self, now_s: float) -> None:
        several = self.count_publishers(self._plans.topic_name) > 1  # one could hide the other's plan
        validity = f"several nodes publish {PLAN}, must be one" if several else self._states.validity(now_s)
        if validity == self._said and now_s - self._said_s < PERIOD_S:
            return
        if validity not in (VALID, self._said):
            self.get_logger().warning(f"held: {validity}")
        self._said, self._said_s = validity, now_s
        self._out.publish(String(data=validity))


def main() -> None:
    """Run the node as a process."""
    sys.exit(run(SceneCheckerNode, __doc__ or "", SceneCheckerParameters))


if __name__ == "__main__":
    main()

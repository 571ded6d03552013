# SPDX-License-Identifier: Apache-2.0
"""The verifier's service that replaces a robot's instruction or goal, and its notices."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from adahi_msgs import msg
from adahi_msgs.srv import Assign

from adahi_ros.core.texts import shortened
from adahi_ros.nodes.common.assignment_messages import to_assignments
from adahi_ros.nodes.common.qos import ASSIGNMENTS, notice_qos
from adahi_ros.server.assignments import Assignments
from adahi_ros.server.service import ServedTargets


class AssignmentService:
    """Serves `~/assign`, keeps the assignments and publishes them, until it is closed.

    Attributes:
        assignments: of the robots; none at first.

    Args:
        node: has the service.
        targets: must read what is assigned.
        robots: the only robots with a service; empty for any.
    """

    def __init__(self, node: Any, targets: ServedTargets, robots: Sequence[str]) -> None:
        self._node = node
        self.assignments, self._targets, self._robots = Assignments(), targets, robots
        self._started_ns = time.time_ns()  # system time: simulated time may be the same at two starts
        qos = notice_qos()
        self._publishers = {
            robot: node.create_publisher(msg.Assignments, self._topic(robot), qos)
            for robot in robots or ("",)
        }
        self._publish()
        self._service = node.create_service(Assign, "~/assign", self._assign)

    def close(self) -> None:
        """End all assignments."""
        self._node.destroy_service(self._service)
        for publisher in self._publishers.values():
            self._node.destroy_publisher(publisher)

    def _topic(self, robot: str) -> str:
        """Return the name of a robot's topic, beside the remapped shared one."""
        namespace, _, last = self._node.resolve_topic_name(ASSIGNMENTS).rpartition("/")
        return f"{namespace}/{robot}/{last}" if robot else ASSIGNMENTS

    def _publish(self) -> None:
        """Publish the assignments; on a robot's own topic, only that robot's."""
        revisions = self.assignments.revisions
        for robot, publisher in self._publishers.items():
            own = {robot: revisions[robot]} if robot in revisions else {}
            notice = self._started_ns, self.assignments.revision, own if robot else revisions
            publisher.publish(to_assignments(*notice))

    def _assign(self, request: Assign.Request, response: Assign.Response) -> Assign.Response:
        signatures = [self._targets.named(name).description.signature for name in self._targets.names]
        about = request.robot_id, request.instruction, request.goal
        try:
            response.revision = self.assignments.assign(*about, signatures, self._robots)
        except ValueError as error:
            response.message = shortened(str(error))
            return response
        response.success = True
        self._publish()
        robot, revision = request.robot_id, response.revision
        self._node.get_logger().info(f"assignment {revision} of {robot!r}: {_content(request)}")
        return response


def _content(request: Assign.Request) -> str:
    """Return what a request assigns, for people."""
    parts = []
    if request.instruction.strip():
        parts.append(f"instruction {shortened(request.instruction)!r}")
    if len(request.goal):
        parts.append(f"goal of {len(request.goal)} numbers")
    return " and ".join(parts) or "ended"

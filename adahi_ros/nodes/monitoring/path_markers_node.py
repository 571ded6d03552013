# SPDX-License-Identifier: Apache-2.0
"""Draws the path of a robot, and the path that its draft alone would take, for RViz and Foxglove.

Subscribes `draft_status` (adahi_msgs/DraftStatus) and, for an arm, `joint_states` (sensor_msgs/JointState).
Publishes `path_markers` (visualization_msgs/MarkerArray): the path of the present episode, coloured by what
happened at each step, and the drafted path. The tip of an arm is computed from its joints and the robot
description. If actions are positions in a frame, `point_of_action` names their entries.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from adahi_msgs.msg import DraftStatus
from geometry_msgs.msg import Point
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from adahi_ros.contract.contract import COMMAND_FIELDS
from adahi_ros.core.files import read_bytes
from adahi_ros.core.kinematics import Chain
from adahi_ros.nodes.common.parameters import ParameterError, Parameters, group, parameter
from adahi_ros.nodes.common.qos import LISTENING
from adahi_ros.nodes.common.spin import run
from adahi_ros.nodes.common.throttled_log import ThrottledLog
from adahi_ros.nodes.common.timers import steady_timer
from adahi_ros.nodes.monitoring.planned_path import (
    DRAFTED,
    UNUSED,
    ActionPoints,
    ArmPoints,
    Colour,
    EpisodePath,
    Lines,
    PointError,
)

LARGEST_INDEX = 999
ENTRY = f"Entry of the action that is {{}} in frame_id, m; {UNUSED} for none"
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@dataclass(frozen=True)
class MarkedCommandParameters:
    """The entries of an action."""

    joint_names: tuple[str, ...] = parameter(
        (), "Joint of each entry of an action; '' for no drafted path of an arm"
    )
    field: str = parameter(
        "positions",
        "What the entries of an action are; an arm's drafted path needs positions",
        choices=COMMAND_FIELDS,
    )


@dataclass(frozen=True)
class PointOfAction:
    """The entries of an action that are a position."""

    x: int = parameter(UNUSED, ENTRY.format("x"), UNUSED, LARGEST_INDEX)
    y: int = parameter(UNUSED, ENTRY.format("y"), UNUSED, LARGEST_INDEX)
    z: int = parameter(UNUSED, ENTRY.format("z"), UNUSED, LARGEST_INDEX)


@dataclass(frozen=True)
class PathMarkersParameters:
    """Parameters of the node."""

    frame_id: str = parameter(
        "base_link", "Frame of the markers; with a robot description, one of its links above tip_link"
    )
    robot_description: str = parameter("", "URDF of the arm, as text or file; empty for none", optional=True)
    tip_link: str = parameter("", "Link that the path follows; needs robot_description", optional=True)
    command: MarkedCommandParameters = group(MarkedCommandParameters)
    point_of_action: PointOfAction = group(PointOfAction)
    path_steps: int = parameter(400, "Largest number of steps that are drawn", 2, 100000)
    line_width_m: float = parameter(
        0.005, "Width of the executed path; the drafted one has half of it", 1e-5, 1.0
    )
    publish_rate_hz: float = parameter(10.0, "Largest number of messages per second", 0.1, 100.0)


def points_from(values: PathMarkersParameters) -> ArmPoints | ActionPoints:
    """Return the object that makes points from messages.

    Raises:
        ParameterError: names the parameter, its value and what is allowed.
    """
    indices = astuple(values.point_of_action)
    planar = any(index != UNUSED for index in indices)
    if planar == bool(values.robot_description):
        given = "both" if planar else "neither"
        raise ParameterError(f"robot_description, point_of_action: {given} given, must be one of them")
    if planar:
        if values.command.field != "positions":
            raise ParameterError(
                f"command.field: {values.command.field!r}, must be positions for point_of_action"
            )
        return ActionPoints(indices)
    commanded = values.command.joint_names if values.command.field == "positions" else ()
    return ArmPoints(_chain(values), commanded)


def _chain(values: PathMarkersParameters) -> Chain:
    urdf = values.robot_description
    if not urdf.lstrip().startswith("<"):
        try:
            urdf = read_bytes(Path(os.path.expanduser(urdf))).decode()
        except (OSError, ValueError) as error:
            raise ParameterError(f"robot_description: {error}, must be a URDF or a file with one") from None
    try:
        return Chain(urdf, values.frame_id, values.tip_link)
    except ValueError as error:
        raise ParameterError(str(error).replace("base_link:", "frame_id:", 1)) from None


def markers(lines: Lines, header: Header, width_m: float) -> MarkerArray:
    """Make the markers of a path; empty lines delete their markers."""
    executed = _marker("executed", Marker.LINE_LIST, header, width_m, lines.executed)
    executed.colors = [_color(colour) for colour in lines.colours]
    drafted = _marker("drafted", Marker.LINE_STRIP, header, width_m / 2, lines.drafted)
    drafted.color = _color(DRAFTED)
    return MarkerArray(markers=[executed, drafted])


def _marker(
    namespace: str, kind: int, header: Header, width_m: float, points: Sequence[np.ndarray]
) -> Marker:
    marker = Marker(header=header, ns=namespace, type=kind)
    marker.action = Marker.ADD if points else Marker.DELETE
    marker.points = [Point(x=float(x), y=float(y), z=float(z)) for x, y, z in points]
    marker.scale.x = width_m
    marker.pose.orientation.w = 1.0
    return marker


def _color(colour: Colour) -> ColorRGBA:
    red, green, blue, opacity = colour
    return ColorRGBA(r=red, g=green, b=blue, a=opacity)


class PathMarkersNode(Node):
    """The node that shows paths.

    Raises:
        ParameterError: names the parameter, its value and what is allowed.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("path_markers", **options)
        parameters = Parameters(self, PathMarkersParameters)
        self._values = values = parameters.read()
        parameters.frozen = True
        points = points_from(values)
        self._path = EpisodePath(points, values.path_steps)
        self._header: Header | None = None
        self._throttled = ThrottledLog(self, period_s=5.0)
        self._out = self.create_publisher(MarkerArray, "path_markers", LATCHED)
        if isinstance(points, ArmPoints):

            def on_joints(message: JointState) -> None:
                points.add_joints(message.name, message.position)

            self.create_subscription(JointState, "joint_states", on_joints, qos_profile_sensor_data)
        self.create_subscription(DraftStatus, "draft_status", self._on_status, LISTENING)
        steady_timer(self, 1.0 / values.publish_rate_hz, self._publish)

    def _on_status(self, message: DraftStatus) -> None:
        try:
            self._path.add(message)
        except PointError as error:
            self._throttled.warning("path", f"no path: {error}")
            return
        self._header = Header(stamp=message.header.stamp, frame_id=self._values.frame_id)

    def _publish(self) -> None:
        """Publish the path if it has changed."""
        if self._header is not None:
            header, self._header = self._header, None
            self._out.publish(markers(self._path.lines(), header, self._values.line_width_m))


def main() -> None:
    """Run the node as a process."""
    sys.exit(run(PathMarkersNode, __doc__ or "", PathMarkersParameters))


if __name__ == "__main__":
    main()

"""Draws where a robot went and where the draft alone would have gone, for RViz and Foxglove.

Subscribes `draft_status` (adahi_msgs/DraftStatus) and, for an arm, `joint_states` (sensor_msgs/JointState);
publishes `path_markers` (visualization_msgs/MarkerArray): the path of the present episode, coloured by what
became of each step, and the drafted one. An arm's tip is where its joints put it by the robot description;
where actions are positions in a frame themselves, `point_of_action` says which entries are.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from adahi_msgs.msg import DraftStatus
from geometry_msgs.msg import Point
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from adahi_ros.files import read_bytes
from adahi_ros.kinematics import Chain
from adahi_ros.nodes.common.messages import COMMAND_FIELDS
from adahi_ros.nodes.common.parameters import ParameterError, Parameters, group, parameter
from adahi_ros.nodes.common.spin import run

UNUSED = -1
LARGEST_INDEX = 999
ENTRY = f"Entry of the action that is {{}} in frame_id, m; {UNUSED} for none"
WARNING_PERIOD_S = 5.0
LISTENING = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
# Okabe and Ito's colours, for every eye.
VERIFIED = ColorRGBA(r=0.0, g=0.62, b=0.45, a=1.0)
SKIPPED = ColorRGBA(r=0.34, g=0.71, b=0.91, a=1.0)
FALLBACK = ColorRGBA(r=0.84, g=0.37, b=0.0, a=1.0)
DRAFTED = ColorRGBA(r=0.94, g=0.89, b=0.26, a=0.6)


@dataclass(frozen=True)
class CommandParameters:
    """What the entries of an action are."""

    joint_names: tuple[str, ...] = parameter(
        (), "What the entries of an action command; '' for no drafted path of an arm"
    )
    field: str = parameter(
        "positions",
        "What an action is; an arm's drafted path is drawn where it is positions",
        choices=COMMAND_FIELDS,
    )


@dataclass(frozen=True)
class PointOfAction:
    """Which entries of an action are a position."""

    x: int = parameter(UNUSED, ENTRY.format("x"), UNUSED, LARGEST_INDEX)
    y: int = parameter(UNUSED, ENTRY.format("y"), UNUSED, LARGEST_INDEX)
    z: int = parameter(UNUSED, ENTRY.format("z"), UNUSED, LARGEST_INDEX)


@dataclass(frozen=True)
class PathMarkersParameters:
    """What the node is told."""

    frame_id: str = parameter(
        "base_link", "Frame of the markers; with a robot description a link of it, above tip_link"
    )
    robot_description: str = parameter(
        "", "URDF of the arm, its text or a file; empty for none", optional=True
    )
    tip_link: str = parameter("", "Link whose path is drawn; needs robot_description", optional=True)
    command: CommandParameters = group(CommandParameters)
    point_of_action: PointOfAction = group(PointOfAction)
    path_steps: int = parameter(400, "Newest steps that are drawn, of the present episode", 2, 100000)
    line_width_m: float = parameter(0.005, "Of the executed path; the drafted one has half of it", 1e-5, 1.0)
    publish_rate_hz: float = parameter(10.0, "Markers per second at most", 0.1, 100.0)


class PointError(ValueError):
    """A step has no point; says why not."""


class ArmPoints:
    """Where an arm's tip is, and where a drafted action would put it.

    Args:
        chain: from the frame of the markers to the tip.
        commanded: what the entries of an action that is positions command; empty where none are drawn.
    """

    def __init__(self, chain: Chain, commanded: Sequence[str]) -> None:
        self._chain = chain
        self._commanded = commanded
        self._positions: dict[str, float] = {}

    def add_joints(self, message: JointState) -> None:
        """Take in where joints are; several messages may tell of one arm."""
        self._positions.update(zip(message.name, message.position, strict=False))

    def executed(self, message: DraftStatus) -> np.ndarray:
        """Return where the tip is, (3,).

        Raises:
            PointError: a joint has not been heard.
        """
        return self._tip(self._positions)

    def drafted(self, message: DraftStatus) -> np.ndarray | None:
        """Return where the draft puts the tip, (3,); None where actions are not to be drawn.

        Raises:
            PointError: the action has not the size of `commanded`.
        """
        if not self._commanded:
            return None
        if len(message.draft_action) != len(self._commanded):
            raise PointError(
                f"command.joint_names: {len(self._commanded)} names, must be {len(message.draft_action)}, "
                "the size of an action"
            )
        return self._tip({**self._positions, **dict(zip(self._commanded, message.draft_action, strict=True))})

    def _tip(self, positions: dict[str, float]) -> np.ndarray:
        for name in self._chain.joint_names:
            if not math.isfinite(positions.get(name, math.nan)):
                raise PointError(f"joint_states: no position of {name} yet that is finite")
        point: np.ndarray = self._chain.pose(positions)[:3, 3]
        return point


class ActionPoints:
    """Points of actions that are positions themselves.

    Args:
        indices: of x, y and z in an action; `UNUSED` for a coordinate that is 0.
    """

    def __init__(self, indices: Sequence[int]) -> None:
        self._indices = indices

    def executed(self, message: DraftStatus) -> np.ndarray:
        """Return where the action is, (3,).

        Raises:
            PointError: it is too short.
        """
        return self._point(message.action)

    def drafted(self, message: DraftStatus) -> np.ndarray | None:
        """Return where the drafted action is, (3,).

        Raises:
            PointError: it is too short.
        """
        return self._point(message.draft_action)

    def _point(self, action: Sequence[float]) -> np.ndarray:
        if max(self._indices) >= len(action):
            raise PointError(
                f"point_of_action: {max(self._indices)}, must be below {len(action)}, the size of an action"
            )
        return np.array([0.0 if index == UNUSED else action[index] for index in self._indices])


def points_from(values: PathMarkersParameters) -> ArmPoints | ActionPoints:
    """Return what makes points of messages.

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
            urdf = read_bytes(Path(urdf)).decode()
        except (OSError, ValueError) as error:
            raise ParameterError(f"robot_description: {error}, must be a URDF or a file with one") from None
    try:
        return Chain(urdf, values.frame_id, values.tip_link)
    except ValueError as error:
        raise ParameterError(str(error).replace("base_link:", "frame_id:", 1)) from None


@dataclass(frozen=True)
class Place:
    """Where one step was, and what became of it."""

    executed: np.ndarray
    drafted: np.ndarray | None
    colour: ColorRGBA


def colour_of(message: DraftStatus) -> ColorRGBA:
    """Return the colour of a step: verified, skipped by the gate, or a fallback."""
    if message.reason != DraftStatus.REASON_NONE:
        return FALLBACK
    return VERIFIED if message.verified else SKIPPED


def markers(places: Sequence[Place], header: Header, width_m: float) -> MarkerArray:
    """Return the executed path, a segment per step in its colour, and the drafted one.

    What has too few points for a line is deleted.
    """
    steps = list(pairwise(places))
    executed = _marker("executed", Marker.LINE_LIST, header, width_m)
    executed.points = _points(end for step in steps for end in (step[0].executed, step[1].executed))
    executed.colors = [step[0].colour for step in steps for _ in range(2)]
    drafted = _marker("drafted", Marker.LINE_STRIP, header, width_m / 2)
    drafted.points = _points(place.drafted for place in places if place.drafted is not None)
    drafted.color = DRAFTED
    for marker in (executed, drafted):
        marker.action = Marker.ADD if len(marker.points) > 1 else Marker.DELETE
    return MarkerArray(markers=[executed, drafted])


def _marker(namespace: str, kind: int, header: Header, width_m: float) -> Marker:
    marker = Marker(header=header, ns=namespace, type=kind)
    marker.scale.x = width_m
    marker.pose.orientation.w = 1.0
    return marker


def _points(places: Iterable[np.ndarray]) -> list[Point]:
    return [Point(x=float(x), y=float(y), z=float(z)) for x, y, z in places]


class PathMarkersNode(Node):
    """See the module.

    Raises:
        ParameterError: names the parameter, its value and what is allowed.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("path_markers", **options)
        parameters = Parameters(self, PathMarkersParameters)
        self._values = values = parameters.read()
        parameters.frozen = True
        self._source = points_from(values)
        self._places: deque[Place] = deque(maxlen=values.path_steps)
        self._key = (-1, -1)  # episode and step of the newest
        self._header: Header | None = None
        self._out = self.create_publisher(MarkerArray, "path_markers", LATCHED)
        if isinstance(self._source, ArmPoints):
            self.create_subscription(
                JointState, "joint_states", self._source.add_joints, qos_profile_sensor_data
            )
        self.create_subscription(DraftStatus, "draft_status", self._on_status, LISTENING)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(1.0 / values.publish_rate_hz, self._publish, clock=steady)

    def _on_status(self, message: DraftStatus) -> None:
        try:
            place = Place(self._source.executed(message), self._source.drafted(message), colour_of(message))
        except PointError as error:
            self.get_logger().warning(f"no path: {error}", throttle_duration_sec=WARNING_PERIOD_S)
            return
        key = message.episode_id, message.step_id
        if key[0] != self._key[0] or key[1] < self._key[1]:
            self._places.clear()
        self._key = key
        self._places.append(place)
        self._header = Header(stamp=message.header.stamp, frame_id=self._values.frame_id)

    def _publish(self) -> None:
        """Publish what has changed since."""
        if self._header is not None:
            header, self._header = self._header, None
            self._out.publish(markers(list(self._places), header, self._values.line_width_m))


def main() -> None:
    """Run the node as a process."""
    sys.exit(run(PathMarkersNode, __doc__ or "", PathMarkersParameters))


if __name__ == "__main__":
    main()

"""Parameters of the path markers and what is wrong with them, and the messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from std_msgs.msg import Header
from visualization_msgs.msg import Marker

from adahi_ros.nodes.common.parameters import ParameterError, filled
from adahi_ros.nodes.monitoring.path_markers_node import (
    PathMarkersParameters,
    markers,
    points_from,
)
from adahi_ros.nodes.monitoring.planned_path import FALLBACK, VERIFIED, ArmPoints, Colour, Lines
from test.nodes.test_planned_path import URDF


def values(**changes: Any) -> PathMarkersParameters:
    """The defaults, but for what is different; a double underscore stands for a dot."""
    named = {name.replace("__", "."): value for name, value in changes.items()}
    return filled(PathMarkersParameters, named)


def arm(**changes: Any) -> ArmPoints:
    source = points_from(values(robot_description=URDF, tip_link="tip", **changes))
    assert isinstance(source, ArmPoints)
    return source


def lines(*colours: Colour) -> Lines:
    """A segment per colour, along x, and a drafted line of as many points."""
    corners = [np.array([float(x), 0.0, 0.0]) for x in range(2 * len(colours))]
    doubled = [colour for colour in colours for _ in range(2)]
    return Lines(tuple(corners), tuple(doubled), tuple(corners))


@pytest.mark.parametrize(
    ("changes", "drawn"),
    [
        ({"command__joint_names": ["elbow"]}, True),
        ({"command__field": "velocities", "command__joint_names": ["elbow"]}, False),
        ({}, False),
    ],
)
def test_a_draft_is_drawn_where_it_is_positions_of_known_joints(changes: dict[str, Any], drawn: bool) -> None:
    source = arm(**changes)
    source.add_joints(["shoulder", "elbow"], [0.0, 0.0])
    assert (source.drafted([0.1]) is not None) == drawn


def test_coordinates_are_entries_of_an_action() -> None:
    source = points_from(values(point_of_action__x=2, point_of_action__y=0))
    np.testing.assert_array_equal(source.executed([1.0, 2.0, 3.0]), [3.0, 1.0, 0.0])


def test_a_description_may_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "arm.urdf"
    file.write_text(URDF)
    assert points_from(values(robot_description=str(file), tip_link="tip"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "robot_description, point_of_action: neither given, must be one of them"),
        (
            {"robot_description": URDF, "point_of_action__x": 0},
            "robot_description, point_of_action: both given, must be one of them",
        ),
        ({"robot_description": "no/such.urdf"}, "robot_description: .*no/such.urdf.*, must be a URDF"),
        ({"robot_description": "<robot"}, "robot_description: no XML"),
        ({"robot_description": URDF}, "tip_link: '', must be a link of the robot: base_link, upper"),
        (
            {"robot_description": URDF, "tip_link": "tip", "frame_id": "map"},
            "frame_id: 'map', must be a link",
        ),
        (
            {"point_of_action__y": 1, "command__field": "velocities"},
            "command.field: 'velocities', must be positions for point_of_action",
        ),
    ],
)
def test_a_wrong_parameter_is_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        points_from(values(**changes))


def test_markers_have_the_lines_and_their_colours() -> None:
    executed, drafted = markers(lines(VERIFIED, FALLBACK), Header(frame_id="map"), 0.01).markers
    assert (executed.ns, executed.type, executed.action) == ("executed", Marker.LINE_LIST, Marker.ADD)
    assert [point.x for point in executed.points] == [0.0, 1.0, 2.0, 3.0]
    colours = [(each.r, each.g, each.b, each.a) for each in executed.colors]
    np.testing.assert_allclose(colours, [VERIFIED, VERIFIED, FALLBACK, FALLBACK], atol=1e-6)
    assert (drafted.ns, drafted.type, drafted.action) == ("drafted", Marker.LINE_STRIP, Marker.ADD)
    assert [point.x for point in drafted.points] == [0.0, 1.0, 2.0, 3.0]
    assert (executed.scale.x, drafted.scale.x) == (0.01, 0.005)
    assert executed.header.frame_id == drafted.header.frame_id == "map"


def test_what_has_no_line_is_deleted() -> None:
    assert [each.action for each in markers(lines(), Header(), 0.01).markers] == [Marker.DELETE] * 2

"""Paths of an arm and of a task in a frame, and what is wrong with their parameters."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adahi_msgs.msg import DraftStatus
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from visualization_msgs.msg import Marker

from adahi_ros.nodes.common.parameters import ParameterError, filled
from adahi_ros.nodes.monitoring.path_markers_node import (
    DRAFTED,
    FALLBACK,
    SKIPPED,
    VERIFIED,
    ArmPoints,
    PathMarkersParameters,
    Place,
    PointError,
    colour_of,
    markers,
    points_from,
)

URDF = """
<robot name="plane"><link name="base_link"/><link name="upper"/><link name="lower"/><link name="tip"/>
<joint name="shoulder" type="revolute"><parent link="base_link"/><child link="upper"/>
<axis xyz="0 0 1"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
<origin xyz="1 0 0"/><axis xyz="0 0 1"/></joint>
<joint name="end" type="fixed"><parent link="lower"/><child link="tip"/><origin xyz="0.5 0 0"/></joint>
</robot>
"""


def values(**changes: Any) -> PathMarkersParameters:
    """The defaults, but for what is different; a double underscore stands for a dot."""
    named = {name.replace("__", "."): value for name, value in changes.items()}
    return filled(PathMarkersParameters, named)


def arm(**changes: Any) -> ArmPoints:
    source = points_from(values(robot_description=URDF, tip_link="tip", **changes))
    assert isinstance(source, ArmPoints)
    return source


def tip(shoulder: float, elbow: float) -> list[float]:
    """Where the tip of the arm is, by plane trigonometry."""
    angle = shoulder + elbow
    return [np.cos(shoulder) + 0.5 * np.cos(angle), np.sin(shoulder) + 0.5 * np.sin(angle), 0.0]


def test_an_arm_is_where_its_joints_are_and_its_draft_where_that_commands_them() -> None:
    source = arm(command__joint_names=["elbow", "shoulder"])
    status = DraftStatus(draft_action=[0.5, -0.25], action=[9.0, 9.0])
    with pytest.raises(PointError, match="joint_states: no position of shoulder"):
        source.executed(status)
    source.add_joints(JointState(name=["gripper", "elbow"], position=[7.0, 0.1]))
    source.add_joints(JointState(name=["shoulder"], position=[0.2]))  # from another controller
    np.testing.assert_allclose(source.executed(status), tip(0.2, 0.1))
    np.testing.assert_allclose(source.drafted(status), tip(-0.25, 0.5))
    source.add_joints(JointState(name=["shoulder"], position=[float("nan")]))
    with pytest.raises(PointError, match="finite"):
        source.executed(status)


def test_a_joint_that_is_not_commanded_stays_where_it_is() -> None:
    source = arm(command__joint_names=["elbow"])
    source.add_joints(JointState(name=["shoulder", "elbow"], position=[0.3, 0.0]))
    np.testing.assert_allclose(source.drafted(DraftStatus(draft_action=[1.0])), tip(0.3, 1.0))
    with pytest.raises(PointError, match=r"command\.joint_names: 1 names, must be 2, the size of an action"):
        source.drafted(DraftStatus(draft_action=[1.0, 2.0]))


@pytest.mark.parametrize(
    "changes", [{"command__field": "velocities", "command__joint_names": ["shoulder", "elbow"]}, {}]
)
def test_no_draft_is_drawn_where_actions_are_no_positions_of_known_joints(changes: dict[str, Any]) -> None:
    source = arm(**changes)
    source.add_joints(JointState(name=["shoulder", "elbow"], position=[0.0, 0.0]))
    status = DraftStatus(draft_action=[0.1, 0.2])
    np.testing.assert_allclose(source.executed(status), tip(0.0, 0.0))
    assert source.drafted(status) is None


def test_a_plane_task_is_where_its_action_is() -> None:
    source = points_from(values(point_of_action__x=2, point_of_action__y=0))
    status = DraftStatus(action=[1.0, 2.0, 3.0], draft_action=[4.0, 5.0, 6.0])
    np.testing.assert_array_equal(source.executed(status), [3.0, 1.0, 0.0])
    np.testing.assert_array_equal(source.drafted(status), [6.0, 4.0, 0.0])
    with pytest.raises(PointError, match="point_of_action: 2, must be below 1, the size of an action"):
        source.executed(DraftStatus(action=[1.0]))


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


def test_a_step_has_the_colour_of_what_became_of_it() -> None:
    assert colour_of(DraftStatus(transmitted=True, verified=True)) is VERIFIED
    assert colour_of(DraftStatus()) is SKIPPED
    late = DraftStatus(transmitted=True, reason=DraftStatus.REASON_DEADLINE)
    assert colour_of(late) is colour_of(DraftStatus(reason=DraftStatus.REASON_BREAKER_OPEN)) is FALLBACK


def test_a_segment_has_the_colour_of_the_step_that_led_there() -> None:
    corners = [np.array([float(x), 0.0, 0.0]) for x in range(3)]
    colours = (VERIFIED, FALLBACK, SKIPPED)
    places = [Place(corner, corner + 1.0, colour) for corner, colour in zip(corners, colours, strict=True)]
    executed, drafted = markers(places, Header(frame_id="map"), 0.01).markers
    assert (executed.ns, executed.type, executed.action) == ("executed", Marker.LINE_LIST, Marker.ADD)
    assert [point.x for point in executed.points] == [x for pair in pairwise(range(3)) for x in pair]
    assert list(executed.colors) == [VERIFIED, VERIFIED, FALLBACK, FALLBACK]
    assert (drafted.ns, drafted.type, drafted.action) == ("drafted", Marker.LINE_STRIP, Marker.ADD)
    assert [point.x for point in drafted.points] == [1.0, 2.0, 3.0]
    assert drafted.color == DRAFTED
    assert executed.header.frame_id == drafted.header.frame_id == "map"


@pytest.mark.parametrize("count", [0, 1])
def test_what_is_no_line_yet_is_deleted(count: int) -> None:
    place = Place(np.zeros(3), None, SKIPPED)
    assert [each.action for each in markers([place] * count, Header(), 0.01).markers] == [Marker.DELETE] * 2

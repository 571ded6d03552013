"""Points, colours and lines of a path, of an arm and of a task in a frame."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adahi_ros.core.kinematics import Chain
from adahi_ros.nodes.monitoring.planned_path import (
    FALLBACK,
    SKIPPED,
    UNUSED,
    VERIFIED,
    ActionPoints,
    ArmPoints,
    EpisodePath,
    PlannedPlace,
    PointError,
    colour_of,
    lines,
)
from adahi_ros.protocol.records import Reason

URDF = """
<robot name="plane"><link name="base_link"/><link name="upper"/><link name="lower"/><link name="tip"/>
<joint name="shoulder" type="revolute"><parent link="base_link"/><child link="upper"/>
<axis xyz="0 0 1"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
<origin xyz="1 0 0"/><axis xyz="0 0 1"/></joint>
<joint name="end" type="fixed"><parent link="lower"/><child link="tip"/><origin xyz="0.5 0 0"/></joint>
</robot>
"""
CHAIN = Chain(URDF, "base_link", "tip")
EXECUTED = [9.0, 9.0]  # whatever it is: an arm is where its joints are


def tip(shoulder: float, elbow: float) -> list[float]:
    """Where the tip of the arm is, by plane trigonometry."""
    angle = shoulder + elbow
    return [np.cos(shoulder) + 0.5 * np.cos(angle), np.sin(shoulder) + 0.5 * np.sin(angle), 0.0]


def test_an_arm_is_where_its_joints_are_and_its_draft_where_it_commands() -> None:
    source = ArmPoints(CHAIN, ["elbow", "shoulder"])
    with pytest.raises(PointError, match="joint_states: no position of shoulder"):
        source.executed(EXECUTED)
    source.add_joints(["gripper", "elbow"], [7.0, 0.1])
    source.add_joints(["shoulder"], [0.2])  # from another controller
    np.testing.assert_allclose(source.executed(EXECUTED), tip(0.2, 0.1))
    np.testing.assert_allclose(np.asarray(source.drafted([0.5, -0.25])), tip(-0.25, 0.5))
    source.add_joints(["shoulder"], [float("nan")])
    with pytest.raises(PointError, match="finite"):
        source.executed(EXECUTED)


def test_a_joint_that_is_not_commanded_stays_where_it_is() -> None:
    source = ArmPoints(CHAIN, ["elbow"])
    source.add_joints(["shoulder", "elbow"], [0.3, 0.0])
    np.testing.assert_allclose(np.asarray(source.drafted([1.0])), tip(0.3, 1.0))
    with pytest.raises(PointError, match=r"command\.joint_names: 1 names, must be 2, the size of an action"):
        source.drafted([1.0, 2.0])


def test_no_draft_is_drawn_where_nothing_is_known_to_be_commanded() -> None:
    source = ArmPoints(CHAIN, [])
    source.add_joints(["shoulder", "elbow"], [0.0, 0.0])
    np.testing.assert_allclose(source.executed(EXECUTED), tip(0.0, 0.0))
    assert source.drafted([0.1, 0.2]) is None


def test_a_plane_task_is_where_its_action_is() -> None:
    source = ActionPoints([2, 0, UNUSED])
    np.testing.assert_array_equal(source.executed([1.0, 2.0, 3.0]), [3.0, 1.0, 0.0])
    np.testing.assert_array_equal(source.drafted([4.0, 5.0, 6.0]), [6.0, 4.0, 0.0])
    with pytest.raises(PointError, match="point_of_action: 2, must be below 1, the size of an action"):
        source.executed([1.0])


def status(**changes: Any) -> Any:
    values = {"episode_id": 0, "step_id": 0, "reason": Reason.NONE, "verified": True, **changes}
    return SimpleNamespace(**{"action": [0.0], "draft_action": [0.0], **values})


def test_a_step_has_the_colour_of_what_became_of_it() -> None:
    assert colour_of(status()) == VERIFIED
    assert colour_of(status(verified=False)) == SKIPPED
    for reason in (Reason.DEADLINE, Reason.BREAKER_OPEN, 99):  # of a robot that knows more of them
        assert colour_of(status(verified=False, reason=int(reason))) == FALLBACK


def test_a_segment_has_the_colour_of_the_step_that_led_there() -> None:
    corners = [np.array([float(x), 0.0, 0.0]) for x in range(3)]
    colours = (VERIFIED, FALLBACK, SKIPPED)
    drawn = lines(
        [PlannedPlace(corner, corner + 1.0, colour) for corner, colour in zip(corners, colours, strict=True)]
    )
    assert [point[0] for point in drawn.executed] == [x for pair in pairwise(range(3)) for x in pair]
    assert drawn.colours == (VERIFIED, VERIFIED, FALLBACK, FALLBACK)
    assert [point[0] for point in drawn.drafted] == [1.0, 2.0, 3.0]


def test_what_is_no_line_yet_is_empty() -> None:
    place = PlannedPlace(np.zeros(3), np.zeros(3), SKIPPED)
    for places in ([], [place]):
        drawn = lines(places)
        assert drawn.executed == drawn.colours == drawn.drafted == ()


def ends(path: EpisodePath) -> list[float]:
    """The x of each place that is drawn; empty before there are two."""
    points = [float(point[0]) for point in path.lines().executed]
    return [*points[::2], *points[-1:]]


def test_a_path_is_of_the_newest_steps_of_one_episode() -> None:
    path = EpisodePath(ActionPoints([0, UNUSED, UNUSED]), steps=3)
    for step in range(5):
        path.add(status(step_id=step, action=[float(step)]))
    assert ends(path) == [2.0, 3.0, 4.0]
    path.add(status(episode_id=1, step_id=5, action=[7.0]))
    assert ends(path) == []
    path.add(status(episode_id=1, step_id=6, action=[8.0]))
    assert ends(path) == [7.0, 8.0]
    path.add(status(episode_id=1, step_id=0, action=[9.0]))  # a robot that was restarted
    assert ends(path) == []


def test_a_step_without_a_point_leaves_the_path_as_it_was() -> None:
    path = EpisodePath(ActionPoints([0, UNUSED, UNUSED]), steps=9)
    for step in range(2):
        path.add(status(step_id=step, action=[float(step)]))
    with pytest.raises(PointError, match="point_of_action: 0, must be below 0"):
        path.add(status(episode_id=1, action=[]))
    assert ends(path) == [0.0, 1.0]

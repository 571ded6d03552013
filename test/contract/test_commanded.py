"""What an action commands: said by its messages where they say it, else by who runs the robot."""

from __future__ import annotations

import pytest

from adahi_ros.contract.commanded import Commanded, commanded
from adahi_ros.contract.contract import Alignment, Channel, Source

TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
TWIST = "geometry_msgs/msg/TwistStamped"
NUMBERS = "std_msgs/msg/Float64MultiArray"


def action(kind: str, *select: str) -> Source:
    return Source("action", Channel("command", kind), select, Alignment("hold", "receive", 1.0))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            action(TRAJECTORY, "velocities.elbow", "velocities.wrist.left"),
            Commanded(("elbow", "wrist.left"), "velocities"),
        ),
        (
            action(TWIST, "twist.linear.x", "twist.angular.z"),
            Commanded(("linear.x", "angular.z"), "velocities"),
        ),
        (action(NUMBERS, "data.0", "data.1"), Commanded(("left", "right"), "effort")),
    ],
)
def test_entries_are_named_by_the_message_or_by_the_parameters(source: Source, expected: Commanded) -> None:
    assert commanded(source, ["left", "right"], "effort") == expected


def test_an_action_of_several_fields_is_refused() -> None:
    words = r"contract: its action has the fields \['positions', 'velocities'\], must have one"
    with pytest.raises(ValueError, match=words):
        commanded(action(TRAJECTORY, "positions.elbow", "velocities.elbow"), [], "positions")


@pytest.mark.parametrize("names", [[], ["left"], ["left", "right", "third"]])
def test_bare_numbers_without_a_name_each_are_refused(names: list[str]) -> None:
    words = r"command.joint_names: \[.*\], must name the 2 numbers of std_msgs/msg/Float64MultiArray"
    with pytest.raises(ValueError, match=words):
        commanded(action(NUMBERS, "data.0", "data.1"), names, "positions")

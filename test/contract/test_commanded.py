"""What an action commands, by its messages or by the names in the contract."""

from __future__ import annotations

import pytest

from adahi_ros.contract.commanded import (
    Commanded,
    commanded,
)
from adahi_ros.contract.contract import Action, Alignment, Channel, Sink, Source

TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
TWIST = "geometry_msgs/msg/TwistStamped"
NUMBERS = "std_msgs/msg/Float64MultiArray"


GRIPPER = "control_msgs/action/GripperCommand"


def sink(
    kind: str, *select: str, topic: str = "command", names: tuple[str, ...] = (), field: str = ""
) -> Sink:
    source = Source(f"action.{topic}", Channel(topic, kind), select, Alignment("hold", "receive", 1.0))
    return Sink(source, names, field)


def action(kind: str, *select: str) -> Action:
    return Action((sink(kind, *select),))


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        (
            action(TRAJECTORY, "velocities.elbow", "velocities.wrist.left"),
            Commanded.alike(("elbow", "wrist.left"), "velocities"),
        ),
        (
            action(TWIST, "twist.linear.x", "twist.angular.z"),
            Commanded.alike(("linear.x", "angular.z"), "velocities"),
        ),
    ],
)
def test_entries_are_named_by_the_message(whole: Action, expected: Commanded) -> None:
    assert commanded(whole) == expected


def test_an_action_of_several_fields_is_refused() -> None:
    words = r"contract: action.command has the fields \['positions', 'velocities'\], must have one"
    with pytest.raises(ValueError, match=words):
        commanded(action(TRAJECTORY, "positions.elbow", "velocities.elbow"))


def test_bare_numbers_without_names_are_refused() -> None:
    words = r"contract: action.command has 2 numbers of std_msgs.*, must have their names and field"
    with pytest.raises(ValueError, match=words):
        commanded(action(NUMBERS, "data.0", "data.1"))


def test_several_sinks_command_one_after_the_other_each_in_its_own_way() -> None:
    whole = Action(
        (
            sink(TRAJECTORY, "velocities.elbow", "velocities.wrist", topic="arm"),
            sink(GRIPPER, "position.finger", topic="gripper"),
            sink(NUMBERS, "data.0", topic="lift", names=("mast",), field="effort"),
            sink(TWIST, "twist.linear.x", topic="base"),
        )
    )
    what = commanded(whole)
    assert what.names == ("elbow", "wrist", "finger", "mast", "linear.x")
    assert what.fields == ("velocities", "velocities", "goals", "effort", "velocities")


def test_a_joint_has_one_sink() -> None:
    whole = Action(
        (
            sink(TRAJECTORY, "positions.elbow", "positions.finger", topic="arm"),
            sink(GRIPPER, "position.finger", topic="gripper"),
        )
    )
    with pytest.raises(ValueError, match=r"finger is commanded by .*, must be by one"):
        commanded(whole)


TWO = Action(
    (
        sink(TRAJECTORY, "positions.elbow", "positions.wrist", topic="arm"),
        sink(NUMBERS, "data.0", topic="lift", names=("mast",), field="positions"),
    )
)

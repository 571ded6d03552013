"""What an action commands: said by its messages where they say it, else by who runs the robot."""

from __future__ import annotations

import pytest

from adahi_ros.contract.commanded import (
    Commanded,
    check_topics_apart,
    commanded,
    kinds_by_sink,
)
from adahi_ros.contract.contract import BY_CONTRACT, Action, Alignment, Channel, Sink, Source

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
        (action(NUMBERS, "data.0", "data.1"), Commanded.alike(("left", "right"), "effort")),
    ],
)
def test_entries_are_named_by_the_message_or_by_the_parameters(whole: Action, expected: Commanded) -> None:
    assert commanded(whole, ["left", "right"], "effort") == expected


def test_an_action_of_several_fields_is_refused() -> None:
    words = r"contract: action.command has the fields \['positions', 'velocities'\], must have one"
    with pytest.raises(ValueError, match=words):
        commanded(action(TRAJECTORY, "positions.elbow", "velocities.elbow"), [], "positions")


@pytest.mark.parametrize("names", [[], ["left"], ["left", "right", "third"]])
def test_bare_numbers_without_a_name_each_are_refused(names: list[str]) -> None:
    words = r"command.joint_names: \[.*\], must name the 2 numbers of action.command, std_msgs"
    with pytest.raises(ValueError, match=words):
        commanded(action(NUMBERS, "data.0", "data.1"), names, "positions")


def test_several_sinks_command_one_after_the_other_each_in_its_own_way() -> None:
    whole = Action(
        (
            sink(TRAJECTORY, "velocities.elbow", "velocities.wrist", topic="arm"),
            sink(GRIPPER, "position.finger", topic="gripper"),
            sink(NUMBERS, "data.0", topic="lift", names=("mast",), field="effort"),
            sink(TWIST, "twist.linear.x", topic="base"),
        )
    )
    what = commanded(whole, [], "positions")
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
        commanded(whole, [], "positions")


TWO = Action(
    (
        sink(TRAJECTORY, "positions.elbow", "positions.wrist", topic="arm"),
        sink(NUMBERS, "data.0", topic="lift", names=("mast",), field="positions"),
    )
)
INTERFACES = {"joint_trajectory": TRAJECTORY, "twist": TWIST}
KNOWN = (TRAJECTORY, NUMBERS, GRIPPER)


def test_a_sink_sends_the_contracts_type_unless_a_parameter_names_one() -> None:
    with_hand = Action((*TWO.sinks, sink(GRIPPER, "position.finger", topic="gripper")))
    assert kinds_by_sink(with_hand, BY_CONTRACT, INTERFACES, KNOWN) == list(KNOWN)
    assert kinds_by_sink(action(TRAJECTORY, "positions.elbow"), "twist", INTERFACES, KNOWN) == [TWIST]


@pytest.mark.parametrize(
    ("whole", "given", "fault"),
    [
        (TWO, "twist", "command_interface: 'twist', must be by_contract with several actions"),
        (action(GRIPPER, "position.finger"), "twist", "command_interface: 'twist', must be by_contract"),
        (action(TWIST, "twist.linear.x"), BY_CONTRACT, f"contract: commands are {TWIST}, must be one of tra"),
    ],
)
def test_an_interface_that_cannot_be_had_is_refused(whole: Action, given: str, fault: str) -> None:
    with pytest.raises(ValueError, match=f"^{fault}"):
        kinds_by_sink(whole, given, INTERFACES, KNOWN)


def test_two_actions_have_two_topics() -> None:
    check_topics_apart(TWO.sinks, ["/arm", "/lift"])
    fault = (
        "^action.arm.channel.topic: 'arm' and 'lift' of action.lift, both '/r1/arm', must be one action's$"
    )
    with pytest.raises(ValueError, match=fault):
        check_topics_apart(TWO.sinks, ["/r1/arm", "/r1/arm"])

"""Commands of every kind are read back bit for bit, and what is no sound command is refused by its field."""

from __future__ import annotations

import math
import struct
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rclpy.qos import ReliabilityPolicy

from adahi_ros.nodes.common.command_interfaces import (
    COMMAND_INTERFACES,
    INTERFACE_OF_KIND,
    CommandInterface,
    command_interface,
)
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import command_qos

JOINTS = ("panda_joint1", "panda_joint2", "panda_joint3")
AXES = ("angular.z", "linear.x", "linear.y")
FRAME = "panda_link0"
PERIOD_S = 0.05
STAMP_NS = 1_234_567_890_123_456_789
ACTION = np.array([0.1, -0.2, 0.3])
EVERY = [
    "joint_trajectory",
    "forward_command",
    "twist",
    "joint_jog",
]
NAMED = ["joint_trajectory", "joint_jog"]


def opened(name: str) -> tuple[CommandInterface, tuple[str, ...], str]:
    """Return an interface, names that it can command, and the first field that it carries."""
    kind = COMMAND_INTERFACES[name]
    names, field = (AXES if kind.names else JOINTS), kind.fields[0]
    return command_interface(name, names, field, FRAME), names, field


def message_of(name: str) -> tuple[CommandInterface, tuple[str, ...], str, Any]:
    interface, names, field = opened(name)
    return interface, names, field, interface.message(names, field, ACTION, PERIOD_S, STAMP_NS)


@pytest.mark.parametrize("name", EVERY)
@given(action=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3))
def test_what_is_read_back_has_the_bits_that_were_sent(name: str, action: list[float]) -> None:
    from rclpy.serialization import deserialize_message, serialize_message

    interface, names, _ = opened(name)
    for field in interface.fields:
        message = interface.message(names, field, np.array(action), PERIOD_S, STAMP_NS)
        on_the_air = deserialize_message(serialize_message(message), interface.message_type)
        back = interface.action(on_the_air, names, field)
        assert back.dtype == np.float64
        assert struct.pack("3d", *back) == struct.pack("3d", *action)


@pytest.mark.parametrize("name", EVERY)
def test_contracts_choose_it_by_the_name_of_its_messages(name: str) -> None:
    interface, _, _ = opened(name)
    package, folder, *_ = interface.message_type.__module__.split(".")
    assert INTERFACE_OF_KIND[f"{package}/{folder}/{interface.message_type.__name__}"] == name


@pytest.mark.parametrize("name", EVERY)
def test_the_stamp_is_read_back_where_there_is_one(name: str) -> None:
    interface, names, field, message = message_of(name)
    assert interface.stamped is hasattr(message, "header")
    assert interface.stamp_ns(message) == (STAMP_NS if interface.stamped else 0)
    assert interface.stamp_ns(interface.message(names, field, ACTION, PERIOD_S, 0)) == 0


@pytest.mark.parametrize("name", NAMED)
def test_joints_may_be_in_any_order(name: str) -> None:
    interface, names, field, message = message_of(name)
    message.joint_names = message.joint_names[::-1]
    np.testing.assert_array_equal(interface.action(message, names, field), ACTION[::-1])


@pytest.mark.parametrize("wrong", [JOINTS[:2], (*JOINTS[:2], "elbow"), (*JOINTS[:2], JOINTS[0]), ()])
@pytest.mark.parametrize("name", NAMED)
def test_wrong_joints_are_refused_by_name(name: str, wrong: tuple[str, ...]) -> None:
    interface, names, field, message = message_of(name)
    message.joint_names = list(wrong)
    with pytest.raises(ValueError, match=r"joint_names: \[.*must be \['panda_joint1', 'panda_joint2'"):
        interface.action(message, names, field)


def put(name: str, message: Any, values: list[float]) -> None:
    """Write values into a command, whatever they are."""
    if name == "joint_trajectory":
        message.points[0].positions = values
    elif name == "forward_command":
        message.data = values
    else:
        message.velocities = values


SIZED = ["joint_trajectory", "forward_command", "joint_jog"]
WHERE = {"joint_trajectory": r"points\[0\].positions", "forward_command": "data", "joint_jog": "velocities"}


@pytest.mark.parametrize("count", [0, 2, 4])
@pytest.mark.parametrize("name", SIZED)
def test_a_wrong_size_is_refused(name: str, count: int) -> None:
    interface, names, field, message = message_of(name)
    put(name, message, [0.0] * count)
    with pytest.raises(ValueError, match=f"{WHERE[name]}: {count} values, expected 3"):
        interface.action(message, names, field)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", SIZED)
def test_what_is_not_finite_is_refused(name: str, value: float) -> None:
    interface, names, field, message = message_of(name)
    put(name, message, [0.0, value, 0.0])
    with pytest.raises(ValueError, match=f"{WHERE[name]}: .*{value}.* must be finite"):
        interface.action(message, names, field)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    "action", [np.zeros(2), np.zeros(4), np.array([0.0, math.nan, 0.0]), np.zeros((1, 3))]
)
def test_an_unsound_action_becomes_no_command(name: str, action: np.ndarray) -> None:
    interface, names, field = opened(name)
    with pytest.raises(ValueError, match=f"{field}: .*(expected 3|must be finite)"):
        interface.message(names, field, action, PERIOD_S, STAMP_NS)


def test_a_trajectory_without_points_is_refused() -> None:
    interface, names, field, message = message_of("joint_trajectory")
    message.points = []
    with pytest.raises(ValueError, match="points: none, must be at least one"):
        interface.action(message, names, field)


def test_a_twist_moves_only_the_axes_that_are_commanded() -> None:
    interface, names, field, message = message_of("twist")
    twist = message.twist
    assert (twist.angular.z, twist.linear.x, twist.linear.y) == tuple(ACTION)
    assert (twist.angular.x, twist.angular.y, twist.linear.z) == (0.0, 0.0, 0.0)
    twist.linear.z = 0.5
    with pytest.raises(ValueError, match=r"twist.linear.z: 0.5, must be 0"):
        interface.action(message, names, field)
    twist.linear.z = math.nan
    with pytest.raises(ValueError, match=r"twist.linear.z: nan, must be 0"):
        interface.action(message, names, field)
    twist.linear.z, twist.linear.x = 0.0, math.nan
    with pytest.raises(ValueError, match=r"twist: .*nan.* must be finite"):
        interface.action(message, names, field)


def test_a_twist_in_another_frame_is_another_motion() -> None:
    interface, names, field, message = message_of("twist")
    assert message.header.frame_id == FRAME
    message.header.frame_id = "camera"
    with pytest.raises(ValueError, match=r"header.frame_id: 'camera', must be 'panda_link0'"):
        interface.action(message, names, field)


def test_a_jog_with_displacements_is_refused() -> None:
    interface, names, field, message = message_of("joint_jog")
    assert message.duration == PERIOD_S
    message.displacements = [0.1, 0.1, 0.1]
    with pytest.raises(ValueError, match=r"displacements: .*must be none"):
        interface.action(message, names, field)


@pytest.mark.parametrize(
    ("name", "names", "field", "frame", "words"),
    [
        ("joint_jog", JOINTS, "positions", "", "command_interface: joint_jog carries velocities"),
        ("twist", AXES, "effort", FRAME, "command_interface: twist carries velocities"),
        ("twist", JOINTS, "velocities", FRAME, "command.joint_names: .*panda_joint1.* must be of linear.x"),
        ("twist", AXES, "velocities", "", "command.frame_id: ''"),
    ],
)
def test_what_an_interface_cannot_carry_is_told_at_the_start(
    name: str, names: tuple[str, ...], field: str, frame: str, words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        command_interface(name, names, field, frame)


def test_without_control_msgs_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "control_msgs", None)
    monkeypatch.setitem(sys.modules, "control_msgs.msg", None)
    with pytest.raises(
        ParameterError, match=r"needs control_msgs: apt install ros-\$ROS_DISTRO-control-msgs"
    ):
        command_interface("joint_jog", JOINTS, "velocities")
    command_interface("joint_trajectory", JOINTS, "velocities")


def test_commands_are_reliable_as_controllers_subscribe_them() -> None:
    assert command_qos().reliability == ReliabilityPolicy.RELIABLE
    assert command_qos() is not command_qos()


def test_a_point_of_positions_carries_velocities_where_they_are_given() -> None:
    interface, names, field = opened("joint_trajectory")
    plain = interface.message(names, field, ACTION, PERIOD_S, 0)
    assert interface.reach(plain, names) == (None, PERIOD_S)
    velocities = np.array([1.0, -2.0, 0.0])
    message = interface.message(names, field, ACTION, PERIOD_S, 0, velocities)
    assert list(message.points[0].positions) == ACTION.tolist()
    message.joint_names = message.joint_names[::-1]
    back, time_s = interface.reach(message, names)
    np.testing.assert_array_equal(back, velocities[::-1])
    assert time_s == PERIOD_S
    message.points[0].velocities = [math.nan, 0.0, 0.0]
    with pytest.raises(ValueError, match=r"points\[0\].velocities: .*nan.* must be finite"):
        interface.reach(message, names)
    with pytest.raises(ValueError, match=r"velocities: 2 values, expected 3"):
        interface.message(names, field, ACTION, PERIOD_S, 0, np.zeros(2))


@pytest.mark.parametrize("name", ["forward_command", "twist"])
def test_other_commands_carry_no_velocities_beside(name: str) -> None:
    interface, names, field, plain = message_of(name)
    assert interface.message(names, field, ACTION, PERIOD_S, STAMP_NS, ACTION) == plain
    assert interface.reach(plain, names) == (None, None)

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

from adahi_lab.nodes.command_inputs import INTERFACES
from adahi_ros.contract.commanded import Commanded
from adahi_ros.contract.sinks import SINKS, message_sink
from adahi_ros.contract.sinks.interface import Command, MessageSink
from adahi_ros.core.command_curve import Curve
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import command_qos, message_type, new_message

JOINTS = ("panda_joint1", "panda_joint2", "panda_joint3")
AXES = ("angular.z", "linear.x", "linear.y")
FRAME = "panda_link0"
PERIOD_S = 0.05
STAMP_NS = 1_234_567_890_123_456_789
ACTION = np.array([0.1, -0.2, 0.3])
EVERY = ["joint_trajectory", "forward_command", "twist", "joint_jog"]
NAMED = ["joint_trajectory", "joint_jog"]


def opened(name: str) -> tuple[MessageSink, tuple[str, ...], str]:
    """Return a sink, names that it can command, and the first field that it carries."""
    make: Any = SINKS[INTERFACES[name]]
    names, field = (AXES if make.names else JOINTS), make.fields[0]
    return message_sink(make.kind, Commanded.alike(names, field), {"frame_id": FRAME}), names, field


def made(interface: MessageSink, names: tuple[str, ...], field: str, action: Any, *more: Any) -> Any:
    return interface.message(Command(names, field, action, PERIOD_S, *more), new_message)


def message_of(name: str) -> tuple[MessageSink, tuple[str, ...], str, Any]:
    interface, names, field = opened(name)
    return interface, names, field, made(interface, names, field, ACTION, STAMP_NS)


@pytest.mark.parametrize("name", EVERY)
@given(action=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3))
def test_what_is_read_back_has_the_bits_that_were_sent(name: str, action: list[float]) -> None:
    from rclpy.serialization import deserialize_message, serialize_message

    interface, names, _ = opened(name)
    for field in interface.fields:
        message = made(interface, names, field, np.array(action), STAMP_NS)
        on_the_air = deserialize_message(serialize_message(message), message_type(interface.kind))
        back = interface.action(on_the_air, names, field)
        assert back.dtype == np.float64
        assert struct.pack("3d", *back) == struct.pack("3d", *action)


@pytest.mark.parametrize("kind", SINKS)
def test_a_sink_is_registered_by_the_type_that_it_sends(kind: str) -> None:
    assert SINKS[kind].kind == kind
    assert message_type(kind).__name__ == kind.rpartition("/")[2]


@pytest.mark.parametrize("name", EVERY)
def test_the_stamp_is_read_back_where_there_is_one(name: str) -> None:
    interface, names, field, message = message_of(name)
    assert interface.stamped is hasattr(message, "header")
    assert interface.stamp_ns(message) == (STAMP_NS if interface.stamped else 0)
    assert interface.stamp_ns(made(interface, names, field, ACTION, 0)) == 0


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


@pytest.mark.parametrize(
    ("values", "words"),
    [
        *(([0.0] * count, f"{count} values, expected 3") for count in (0, 2, 4)),
        *(([0.0, value, 0.0], f".*{value}.* must be finite") for value in (math.nan, math.inf, -math.inf)),
    ],
)
@pytest.mark.parametrize("name", SIZED)
def test_a_wrong_size_and_what_is_not_finite_are_refused(name: str, values: list[float], words: str) -> None:
    interface, names, field, message = message_of(name)
    put(name, message, values)
    with pytest.raises(ValueError, match=f"{WHERE[name]}: {words}"):
        interface.action(message, names, field)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    "action", [np.zeros(2), np.zeros(4), np.array([0.0, math.nan, 0.0]), np.zeros((1, 3))]
)
def test_an_unsound_action_becomes_no_command(name: str, action: np.ndarray) -> None:
    interface, names, field = opened(name)
    with pytest.raises(ValueError, match=f"{field}: .*(expected 3|must be finite)"):
        made(interface, names, field, action, STAMP_NS)


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
    for z, x, words in (
        (0.5, 0.0, r"twist.linear.z: 0.5, must be 0"),
        (math.nan, 0.0, r"twist.linear.z: nan, must be 0"),
        (0.0, math.nan, r"twist: .*nan.* must be finite"),
    ):
        twist.linear.z, twist.linear.x = z, x
        with pytest.raises(ValueError, match=words):
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
        (
            "joint_jog",
            JOINTS,
            "positions",
            "",
            "JointJog has positions, must have velocities",
        ),
        (
            "twist",
            AXES,
            "effort",
            FRAME,
            "TwistStamped has effort, must have velocities",
        ),
        ("twist", JOINTS, "velocities", FRAME, "TwistStamped has .*panda_joint1.* must have of linear.x"),
        ("twist", AXES, "velocities", "", "^frame_id: ''"),
    ],
)
def test_what_an_interface_cannot_carry_is_reported_at_the_start(
    name: str, names: tuple[str, ...], field: str, frame: str, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        message_sink(INTERFACES[name], Commanded.alike(names, field), {"frame_id": frame})


def test_without_control_msgs_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "control_msgs", None)
    monkeypatch.setitem(sys.modules, "control_msgs.msg", None)
    with pytest.raises(
        ParameterError, match=r"is control_msgs installed .* apt install ros-\$ROS_DISTRO-control-msgs"
    ):
        message_type(INTERFACES["joint_jog"])


def test_commands_are_reliable_as_controllers_subscribe_them() -> None:
    assert command_qos().reliability == ReliabilityPolicy.RELIABLE
    assert command_qos() is not command_qos()


def test_a_curve_of_positions_is_carried_and_its_end_is_the_command() -> None:
    interface, names, field = opened("joint_trajectory")
    plain = made(interface, names, field, ACTION, 0)
    alone = interface.curve(plain, names)
    assert alone is not None
    assert alone.times_s.tolist() == [PERIOD_S]
    assert np.isnan(alone.speeds).all()
    sent = Curve(np.array([0.0, 0.07]), np.array([0.5 * ACTION, ACTION]), np.array([ACTION, 0.0 * ACTION]))
    message = made(interface, names, field, ACTION, STAMP_NS, sent)
    np.testing.assert_array_equal(interface.action(message, names, field), ACTION)
    message.joint_names = message.joint_names[::-1]
    back = interface.curve(message, names)
    assert back is not None
    np.testing.assert_allclose(back.times_s, sent.times_s)
    np.testing.assert_array_equal(back.places, sent.places[:, ::-1])
    np.testing.assert_array_equal(back.speeds, sent.speeds[:, ::-1])
    message.points[1].velocities = [math.nan, 0.0, 0.0]
    with pytest.raises(ValueError, match=r"points\[1\].velocities: .*nan.* must be finite"):
        interface.curve(message, names)
    message.points[1].velocities = []
    message.points[1].time_from_start.nanosec = 0
    with pytest.raises(ValueError, match=r"points: time_from_start \[0.0, 0.0\] s, must increase"):
        interface.curve(message, names)
    message.points = []
    with pytest.raises(ValueError, match="points: 0, must be from 1 to 1024"):
        interface.curve(message, names)


@pytest.mark.parametrize("name", ["forward_command", "twist"])
def test_other_commands_carry_no_curve(name: str) -> None:
    interface, names, field, plain = message_of(name)
    curve = Curve(np.zeros(1), ACTION[None], ACTION[None])
    assert made(interface, names, field, ACTION, STAMP_NS, curve) == plain
    assert interface.curve(plain, names) is None

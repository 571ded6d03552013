"""The driver around a robot of LeRobot's, here one of a few lines without LeRobot."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rclpy.publisher import Publisher
from sensor_msgs.msg import CompressedImage, Image, JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.robot.lerobot_arm import LeRobotArm
from adahi_ros.vision.images import from_jpeg
from test.nodes.in_process import NodesInProcess

JOINTS = ("lift", "gripper")
FRAME = np.full((4, 6, 3), 7, np.uint8)


class Device:
    """A robot, or a leader arm; it is at once where it is sent."""

    is_calibrated = True
    bus: Any = None

    def __init__(self, **positions: float) -> None:
        self.at = {f"{name}.pos": value for name, value in positions.items()}
        self.sent: list[dict[str, float]] = []
        self.connected = self.off = self.unplugged = False
        self.faults: list[Exception] = []
        self.frame = FRAME
        self.action_features: dict[str, Any] = dict.fromkeys(self.at, float)
        self.observation_features = {**self.action_features, "front": FRAME.shape, "depth": (4, 6, 1)}

    def connect(self, calibrate: bool) -> None:
        self.connected = not calibrate

    def disconnect(self) -> None:
        self.connected = False
        if self.unplugged:
            raise ConnectionError("no port")

    def get_observation(self) -> dict[str, Any]:
        if self.faults:
            raise self.faults.pop()
        return {**self.at, "front": self.frame}

    def get_action(self) -> dict[str, float]:
        return self.at

    def send_action(self, action: dict[str, float]) -> None:
        self.sent.append(action)
        self.at = action


@pytest.fixture
def robot() -> Device:
    return Device(lift=-60.0, gripper=40.0)


@pytest.fixture
def arm(make_node: Any, nodes: NodesInProcess, robot: Device) -> LeRobotArm:
    arm: LeRobotArm = make_node(LeRobotArm, lambda off: (robot, Device(gripper=3.0)))
    nodes.spin(arm)
    return arm


def test_a_camera_of_one_channel_is_named(
    make_node: Any, robot: Device, capfd: pytest.CaptureFixture[str]
) -> None:
    make_node(LeRobotArm, lambda off: (robot, None))
    assert "camera depth is not published: (4, 6, 1), must have 3 channels" in capfd.readouterr().err


def commander(nodes: NodesInProcess) -> Publisher:
    out = nodes.observer.node.create_publisher(JointTrajectory, "joint_trajectory", 1)
    nodes.wait(lambda: out.get_subscription_count() > 0, "the driver")
    return out


def command(names: tuple[str, ...], *positions: float) -> JointTrajectory:
    return JointTrajectory(joint_names=names, points=[JointTrajectoryPoint(positions=positions)])


def test_all_numbers_are_lerobots(arm: LeRobotArm, nodes: NodesInProcess) -> None:
    kinds = {"joint_states": JointState, "teleop_command": JointState}
    seen: dict[str, list[Any]] = {topic: [] for topic in kinds}
    for topic, found in seen.items():
        nodes.observer.node.create_subscription(kinds[topic], topic, found.append, 10)
    nodes.wait(lambda: len(seen["joint_states"]) > 5 and bool(seen["teleop_command"]), "joint states")
    state, led = seen["joint_states"][0], seen["teleop_command"][0]
    assert (state.name, list(state.position), list(state.velocity)) == (list(JOINTS), [-60.0, 40.0], [])
    assert (led.name, list(led.position)) == (["gripper"], [3.0])


def test_each_frame_comes_once_raw_and_as_jpeg(arm: LeRobotArm, nodes: NodesInProcess, robot: Device) -> None:
    kinds = {
        "joint_states": JointState,
        "front/image_raw": Image,
        "front/image_raw/compressed": CompressedImage,
    }
    seen: dict[str, list[Any]] = {topic: [] for topic in kinds}
    for topic, found in seen.items():
        nodes.observer.node.create_subscription(kinds[topic], topic, found.append, 10)
    states, raw, compressed = seen.values()

    def came() -> bool:
        robot.frame = FRAME.copy()  # LeRobot's camera has a new one
        return bool(raw and compressed)

    def settled() -> bool:
        return len(states) > 5

    nodes.wait(came, "images")
    shown = from_jpeg(bytes(compressed[0].data))
    assert (compressed[0].format, raw[0].encoding) == ("jpeg", "rgb8")
    assert np.abs(shown.astype(int) - FRAME).mean() < 10.0
    for _ in range(2):  # messages may be under way at first
        before = len(raw), len(compressed)
        states.clear()
        nodes.wait(settled, "joint states")
    assert (len(raw), len(compressed)) == before


def test_it_moves_by_commands_and_is_held_without_them(
    arm: LeRobotArm, nodes: NodesInProcess, robot: Device
) -> None:
    here = {"lift.pos": -60.0, "gripper.pos": 40.0}
    assert robot.sent == [here]
    out = commander(nodes)
    out.publish(command(JOINTS[::-1], 45.0, -100.0))
    nodes.wait(lambda: len(robot.sent) == 2, "the command")
    assert robot.sent[1] == {"lift.pos": -90.0, "gripper.pos": 45.0}  # 30 degrees at most
    robot.faults = [ConnectionError("the bus")] * 3
    nodes.wait(lambda: len(robot.sent) == 3, "the hold")
    assert robot.sent[2] == robot.sent[1]
    nodes.wait_s(0.3)
    assert len(robot.sent) == 3


def test_other_commands_move_nothing(arm: LeRobotArm, nodes: NodesInProcess, robot: Device) -> None:
    out = commander(nodes)
    for wrong in (
        command(JOINTS, np.nan, 40.0),
        command(JOINTS[:1], -59.0),
        command(("lift", "hand"), -59.0, 40.0),
        command(("lift", "lift"), -59.0, -59.0),
        command(JOINTS, -59.0),
        JointTrajectory(joint_names=JOINTS),
    ):
        out.publish(wrong)
        nodes.wait_s(0.1)
    other = nodes.observer.node.create_publisher(JointTrajectory, "joint_trajectory", 1)
    nodes.wait(lambda: arm.count_publishers("joint_trajectory") == 2, "both publishers")
    out.publish(command(JOINTS, -59.0, 40.0))
    nodes.wait_s(0.2)
    assert len(robot.sent) == 1
    nodes.observer.node.destroy_publisher(other)
    nodes.wait(lambda: arm.count_publishers("joint_trajectory") == 1, "one publisher")
    out.publish(command(JOINTS, -59.0, 40.0))
    nodes.wait(lambda: len(robot.sent) == 2, "the command")


def test_its_end_holds_the_arm_and_disconnects_it(make_node: Any, robot: Device) -> None:
    def devices(off: bool) -> tuple[Device, None]:
        robot.off = off
        return robot, None

    arm = make_node(LeRobotArm, devices, given={"torque_off": True})
    assert (robot.off, robot.connected) == (True, True)
    arm._on_command(command(JOINTS, -50.0, 40.0))
    arm.hold()
    assert robot.sent == [{"lift.pos": lift, "gripper.pos": 40.0} for lift in (-60.0, -50.0, -60.0)]
    robot.unplugged = True
    arm.destroy_node()
    assert not robot.connected


def test_the_motors_of_an_arm_without_calibration_stay_as_they_are(make_node: Any, robot: Device) -> None:
    calls: list[Any] = []
    robot.is_calibrated = False
    robot.bus = SimpleNamespace(connect=lambda: calls.append("connect"), disconnect=calls.append)
    robot.connect = calls.append  # type: ignore[assignment]
    with pytest.raises(ParameterError, match="not calibrated"):
        make_node(LeRobotArm, lambda off: (robot, None))
    assert calls == ["connect", False]


@pytest.mark.parametrize(
    ("changes", "leader", "said"),
    [
        ({"is_calibrated": False}, None, "not calibrated; run lerobot-calibrate"),
        ({"action_features": {"x.vel": float}}, None, "takes x.vel, must take positions"),
        ({"faults": [ConnectionError("no answer")]}, None, "no answer"),
        ({}, Device(delta_x=0.0), "gives delta_x.pos, must give lift.pos"),
    ],
)
def test_what_is_no_arm_is_refused(
    changes: dict[str, Any], leader: Any, said: str, make_node: Any, robot: Device
) -> None:
    for name, value in changes.items():
        setattr(robot, name, value)
    with pytest.raises(ParameterError, match=said):
        make_node(LeRobotArm, lambda off: (robot, leader))
    assert not robot.connected

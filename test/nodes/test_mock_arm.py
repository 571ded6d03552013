"""An arm that is not there, with the topics of so101_ros2 and two cameras."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from rclpy.action import ActionClient  # type: ignore[attr-defined]
from sensor_msgs.msg import CompressedImage, Image, JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from adahi_ros.core.assets import asset
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import message_type
from adahi_ros.nodes.robot.mock_arm import MockArm
from adahi_ros.vision.images import from_image
from test.nodes.in_process import NodesInProcess

CAMERA = """
  observation.images.NAME:
    channel: {topic: /NAME/image_raw, type: sensor_msgs/msg/Image}
    apply: [resize: [480, 640]]
actions:"""
CONTRACT = asset("config/contracts/so101.yaml").read_text()
for name in ("front", "wrist"):
    CONTRACT = CONTRACT.replace("\nactions:", CAMERA.replace("NAME", name))
CONTRACT += "images_for_target: true\n"
GRIPPER = "control_msgs/action/GripperCommand"


@pytest.fixture
def arm(make_node: Any, nodes: NodesInProcess, tmp_path: Path) -> Iterator[MockArm]:
    path = tmp_path / "so101_act.yaml"
    path.write_text(CONTRACT)
    arm = make_node(MockArm, given={"contract": str(path)})
    nodes.spin(arm)
    yield arm
    nodes.close()


def test_it_goes_where_it_is_commanded(arm: MockArm, nodes: NodesInProcess) -> None:
    seen: list[JointState] = []
    node = nodes.observer.node
    node.create_subscription(JointState, "joint_states", seen.append, 10)
    joints = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll"]
    out = node.create_publisher(JointTrajectory, "arm_controller/joint_trajectory", 1)
    nodes.wait(lambda: bool(seen) and out.get_subscription_count() > 0, "joint states")
    assert sorted(seen[0].name) == sorted([*joints, "gripper"])
    assert set(seen[0].position) == {0.0}
    point = JointTrajectoryPoint(positions=[0.1, 0.2, 0.3, 0.4, 0.5])
    out.publish(JointTrajectory(joint_names=joints, points=[point]))
    kind = message_type(GRIPPER)
    client = ActionClient(node, kind, "gripper_controller/gripper_cmd")
    nodes.wait(client.server_is_ready, "the gripper")
    goal = kind.Goal()
    goal.command.position = 1.5
    sent = client.send_goal_async(goal)
    nodes.wait(lambda: dict(zip(seen[-1].name, seen[-1].position, strict=True))["gripper"] == 1.5, "it")
    nodes.wait(sent.done, "an answer")
    assert dict(zip(seen[-1].name, seen[-1].position, strict=True))["wrist_roll"] == 0.5
    assert arm.commands == 2
    client.destroy()


def test_it_shows_images_of_the_cameras_sizes(arm: MockArm, nodes: NodesInProcess) -> None:
    seen: list[Image] = []
    for topic in ("/front/image_raw", "/wrist/image_raw"):
        nodes.observer.node.create_subscription(Image, topic, seen.append, 1)
    nodes.wait(lambda: len(seen) > 4, "images")
    assert {(each.height, each.width, each.encoding) for each in seen} == {(480, 640, "rgb8")}


def test_it_shows_jpegs_where_the_contract_wants_them(
    make_node: Any, nodes: NodesInProcess, tmp_path: Path
) -> None:
    values = yaml.safe_load(CONTRACT)
    channel = values["observations"]["observation.images.wrist"]["channel"]
    channel.update(topic="/wrist/compressed", type="sensor_msgs/msg/CompressedImage")
    path = tmp_path / "jpeg.yaml"
    path.write_text(yaml.safe_dump(values))
    nodes.spin(make_node(MockArm, given={"contract": str(path)}))
    seen: list[CompressedImage] = []
    nodes.observer.node.create_subscription(CompressedImage, "/wrist/compressed", seen.append, 1)
    nodes.wait(lambda: bool(seen), "an image")
    nodes.close()
    assert from_image(seen[0]).shape == (480, 640, 3)


def test_it_starts_within_its_limits(make_node: Any, tmp_path: Path) -> None:
    arm = make_node(MockArm, given={"contract": "franka_panda"})
    assert arm.positions["panda_joint4"] < -0.5  # may not be 0
    assert arm.positions["panda_joint1"] == 0.0
    joints = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]
    limits = {name: {"position": [-1.0, 1.0]} for name in joints} | {"elbow_flex": {"position": [1.0, 2.0]}}
    path = tmp_path / "limits.yaml"
    path.write_text(yaml.safe_dump({"limits": limits}))
    arm = make_node(MockArm, given={"contract": "so101", "limits": str(path)})
    assert (arm.positions["elbow_flex"], arm.positions["wrist_flex"]) == (1.5, 0.0)


def test_what_it_cannot_read_is_named(make_node: Any, tmp_path: Path) -> None:
    values = yaml.safe_load(CONTRACT)
    values["actions"]["action.arm"]["channel"]["type"] = "std_msgs/msg/String"
    path = tmp_path / "other.yaml"
    path.write_text(yaml.safe_dump(values))
    with pytest.raises(ParameterError, match="std_msgs/msg/String"):
        make_node(MockArm, given={"contract": str(path)})

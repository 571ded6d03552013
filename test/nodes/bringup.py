"""A simulated Panda and its draft policy come up, say what a robot says, and end as Ctrl-C has them end.

`launch_test test/nodes/bringup.py`, in a workspace that is sourced; test_bringup.py has pytest run it.
"""

from __future__ import annotations

import unittest
from typing import Any

import launch_testing
import rclpy
from adahi_msgs.msg import DraftStatus
from launch import LaunchDescription
from launch.actions import GroupAction, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_testing.actions import ReadyToTest
from launch_testing.asserts import assertExitCodes
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from adahi_ros.core.assets import asset
from adahi_ros.nodes.launching.packages import is_installed

DEADLINE_S = 60.0
ROBOT = {
    "params_file": str(asset("config/kitchen.yaml")),
    "contract": "panda_kitchen",
    "safety_limits": "kitchen",
    "require_enable": "false",
}


def included(file: str, **arguments: str) -> GroupAction:
    source = PythonLaunchDescriptionSource(str(asset(f"launch/{file}")))
    # A group: what one file declares is not for the next.
    return GroupAction([IncludeLaunchDescription(source, launch_arguments=arguments.items())])


def generate_test_description() -> LaunchDescription:
    panda = included("panda.launch.py", contract="panda_kitchen")
    return LaunchDescription([panda, included("robot.launch.py", **ROBOT), ReadyToTest()])


def received(kind: Any, topic: str, qos: QoSProfile) -> Any:
    """Return the first message of a topic."""
    rclpy.init()
    try:
        node, first = Node("listener"), Future()
        node.create_subscription(kind, topic, first.set_result, qos)
        rclpy.spin_until_future_complete(node, first, timeout_sec=DEADLINE_S)
        node.destroy_node()
    finally:
        rclpy.shutdown()
    assert first.done(), f"nothing on {topic} within {DEADLINE_S} s"
    return first.result()


class TestUp(unittest.TestCase):
    """What is heard while it runs."""

    def test_the_arm_says_where_its_joints_are(self) -> None:
        state = received(JointState, "joint_states", qos_profile_sensor_data)
        assert {f"panda_joint{number}" for number in range(1, 8)} <= set(state.name)

    def test_the_policy_decides(self) -> None:
        status = received(DraftStatus, "draft_status", qos_profile_sensor_data)
        assert len(status.draft_action) == 9

    def test_the_description_is_there_for_late_subscribers(self) -> None:
        if not is_installed("robot_state_publisher"):
            self.skipTest("robot_state_publisher is not installed")
        from tf2_msgs.msg import TFMessage

        late = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        assert '<robot name="panda_kitchen">' in received(String, "robot_description", late).data
        transforms = received(TFMessage, "tf", QoSProfile(depth=10)).transforms
        assert "panda_link7" in {transform.child_frame_id for transform in transforms}


@launch_testing.post_shutdown_test()
class TestEnded(unittest.TestCase):
    """What is left once launch has interrupted its nodes, as Ctrl-C does."""

    def test_every_node_ended_with_0(self, proc_info: Any) -> None:
        assertExitCodes(proc_info)

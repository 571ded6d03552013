# SPDX-License-Identifier: Apache-2.0
"""Starts a Panda with ros2_control's mock hardware, and the controllers and topics of franka_ros2."""

from __future__ import annotations

import os
from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node, SetRemap

from adahi_ros.nodes.launching.arguments import check_file, with_arguments_checked
from adahi_ros.nodes.launching.exits import fail_with_it
from adahi_ros.nodes.launching.packages import require

CONFIG = Path(__file__).absolute().parents[1] / "config"
CONTROLLERS = (
    "joint_state_broadcaster",
    "panda_gripper_state_broadcaster",
    "joint_trajectory_controller",
    "panda_gripper",
)
PARTS = ("send_goal", "cancel_goal", "get_result", "feedback", "status")  # of a ROS action
TOPICS = {  # ros2_control's name: franka_ros2's name
    "joint_states": "franka/joint_states",
    "panda_gripper_state_broadcaster/joint_states": "panda_gripper/joint_states",
    **{
        f"panda_gripper/gripper_cmd/_action/{part}": f"panda_gripper/gripper_action/_action/{part}"
        for part in PARTS
    },
}
# Later managers pass no remappings on to their controllers; Humble's spawner has no arguments for them.
BY_MANAGER = os.environ.get("ROS_DISTRO") == "humble"
REMAPPED = " ".join(["--ros-args", *(f"--remap {theirs}:={name}" for theirs, name in TOPICS.items())])


def check(context: LaunchContext) -> None:
    check_file(context, "controllers")
    require("panda_mock.launch.py", "controller_manager")


def generate_launch_description() -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument(
            "controllers",
            default_value=str(CONFIG / "controllers" / "panda.yaml"),
            description="Parameter file of controller_manager and its controllers",
        ),
        # Not auto: controller_manager reads the hardware from robot_description.
        DeclareLaunchArgument(
            "robot_state_publisher",
            default_value="true",
            choices=["true", "false"],
            description="Publish /tf and robot_description; false if another launch file does",
        ),
        DeclareLaunchArgument("log_level", default_value="info", description="debug, info, warn, error"),
    ]
    description = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(Path(__file__).with_name("description.launch.py")))
    )
    manager = Node(
        package="controller_manager",
        executable="ros2_control_node",
        parameters=[LaunchConfiguration("controllers")],
        remappings=TOPICS.items() if BY_MANAGER else [],
        arguments=["--ros-args", "--log-level", LaunchConfiguration("log_level")],
        output="screen",
        on_exit=fail_with_it,
    )
    spawner = Node(
        package="controller_manager",
        executable="spawner",
        arguments=[
            *(*CONTROLLERS, "--param-file", LaunchConfiguration("controllers")),
            *([] if BY_MANAGER else ["--controller-ros-args", REMAPPED]),
        ],
        output="screen",
        on_exit=fail_with_it,
    )
    joint_states = SetRemap(src="joint_states", dst=TOPICS["joint_states"])
    described = GroupAction([joint_states, description])
    nodes = [OpaqueFunction(function=check), described, manager, spawner]
    return with_arguments_checked(LaunchDescription([*arguments, *nodes]))

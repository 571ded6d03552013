# SPDX-License-Identifier: Apache-2.0
"""Starts the draft policy on a robot, real or simulated, with the robot's topic names."""

from __future__ import annotations

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import SetRemap

from adahi_ros.nodes.launching.arguments import with_arguments_checked

TOPICS = {  # the node's topic: argument, description
    "joint_states": ("joint_states", "the robot's joint_state_broadcaster"),
    "task_state": ("task_state", "state of the task"),
    "camera/image_raw": ("camera", "the camera's images"),
    "command": ("command", "the controller's input, such as /joint_trajectory_controller/joint_trajectory"),
    "enable": ("enable", "the deadman, the operator's permission to move (std_msgs/Bool), repeated"),
    "takeover": ("takeover", "a person drives while it is true (std_msgs/Bool), repeated"),
    "joy": ("joy", "likewise, with takeover.button (sensor_msgs/Joy)"),
    "teleop_command": ("teleop_command", "what that person commands, such as /leader/joint_states"),
}


def generate_launch_description() -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument(argument, default_value=topic, description=f"Topic: {about}")
        for topic, (argument, about) in TOPICS.items()
    ]
    safety = [
        DeclareLaunchArgument(
            "require_enable",
            default_value="true",
            description="Move only while enable or ~/set_enabled allows it; false only for simulated robots",
        ),
    ]
    params_file = DeclareLaunchArgument("params_file", description="ROS parameter file of this robot")
    remaps = [
        SetRemap(src=topic, dst=LaunchConfiguration(argument)) for topic, (argument, _) in TOPICS.items()
    ]
    draft = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(Path(__file__).with_name("draft.launch.py")))
    )
    nodes = GroupAction([*remaps, draft])
    return with_arguments_checked(LaunchDescription([params_file, *arguments, *safety, nodes]))

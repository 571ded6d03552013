# SPDX-License-Identifier: Apache-2.0
"""The draft policy on a robot, real or simulated: its topics have the names that the robot uses."""

from __future__ import annotations

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import SetRemap

from adahi_ros.nodes.launching.arguments import with_arguments_checked

TOPICS = {  # the node's name for each: argument, description
    "joint_states": ("joint_states", "the robot's joint_state_broadcaster"),
    "task_state": ("task_state", "the state of the task, from what watches it"),
    "camera/image_raw": ("camera", "the camera's images"),
    "command": ("command", "the controller's input, such as /joint_trajectory_controller/joint_trajectory"),
    "enable": ("enable", "the deadman, published again and again (std_msgs/Bool)"),
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
            description="Move only while enable, or ~/set_enabled, allows it; false only in simulation",
        ),
        DeclareLaunchArgument(
            "require_limits",
            default_value="true",
            description="Refuse to start without limits in safety_limits or params_file; "
            "safety_limits:=none says that there are none",
        ),
        DeclareLaunchArgument(
            "fallback",
            default_value="hold",
            description="Without the target's reply: hold executes at most fallback_limit drafts in a row, "
            "then holds the robot until a reply comes; draft goes on with drafts alone, which rarely succeed",
        ),
    ]
    params_file = DeclareLaunchArgument(  # no default: a shipped task's is for another robot
        "params_file", description="ROS parameter file of this robot, such as `adahi thresholds` writes"
    )
    remaps = [
        SetRemap(src=topic, dst=LaunchConfiguration(argument)) for topic, (argument, _) in TOPICS.items()
    ]
    draft = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(Path(__file__).with_name("draft.launch.py")))
    )
    nodes = GroupAction([*remaps, draft])
    return with_arguments_checked(LaunchDescription([params_file, *arguments, *safety, nodes]))

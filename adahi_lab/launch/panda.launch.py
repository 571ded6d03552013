# SPDX-License-Identifier: Apache-2.0
"""Simulates a Panda in a kitchen, with the topics of a real one, so that `robot.launch.py` fits both."""

from __future__ import annotations

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import SetRemap

from adahi_lab.nodes.chosen import Chosen
from adahi_ros.core.assets import asset
from adahi_ros.nodes.launching.arguments import with_arguments_checked

URDF = asset("config/urdf/panda_kitchen.urdf")
INPUTS = {  # input topic of a real robot's controller, by command interface
    "joint_trajectory": "joint_trajectory_controller/joint_trajectory",
    "forward_command": "forward_velocity_controller/commands",
    "joint_jog": "servo_node/delta_joint_cmds",
}


def generate_launch_description() -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument("task", default_value="kitchen", description="Task of the Panda"),
        DeclareLaunchArgument(
            "command_interface",
            default_value="joint_trajectory",
            choices=list(INPUTS),
            description="Message type of command",
        ),
        DeclareLaunchArgument("joint_states", default_value="joint_states", description="Topic: its joints"),
        DeclareLaunchArgument(
            "command",
            default_value=Chosen("command_interface", INPUTS),
            description="Topic: input of the simulated controller; the default depends on command_interface",
        ),
        DeclareLaunchArgument("camera", default_value="camera/image_raw", description="Topic: its camera"),
        DeclareLaunchArgument(
            "urdf", default_value=str(URDF), description="File of its URDF, for /tf and RViz"
        ),
    ]
    topics = {"joint_states": "joint_states", "command": "command", "camera/image_raw": "camera"}
    remaps = [SetRemap(src=topic, dst=LaunchConfiguration(argument)) for topic, argument in topics.items()]
    included = [
        IncludeLaunchDescription(PythonLaunchDescriptionSource(str(asset(f"launch/{file}"))))
        for file in ("description.launch.py", "simulation.launch.py")
    ]
    nodes = GroupAction([*remaps, *included])
    return with_arguments_checked(LaunchDescription([*arguments, nodes]))

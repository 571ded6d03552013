"""The target verifier node, on the machine that has the larger policy."""

from __future__ import annotations

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "namespace", default_value="", description="Namespace of the services; that of the robot"
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value=PathJoinSubstitution([FindPackageShare("adahi_ros"), "config", "ball.yaml"]),
                description="ROS parameter file, such as 'adahi calibrate' writes",
            ),
            DeclareLaunchArgument("log_level", default_value="info", description="debug, info, warn, error"),
            Node(
                package="adahi_ros",
                executable="target_verifier_node",
                name="target_verifier",
                namespace=LaunchConfiguration("namespace"),
                parameters=[LaunchConfiguration("params_file")],
                arguments=[
                    "--ros-args",
                    "--log-level",
                    ["target_verifier:=", LaunchConfiguration("log_level")],
                ],
                output="screen",
            ),
        ]
    )

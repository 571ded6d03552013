# SPDX-License-Identifier: Apache-2.0
"""Shows a robot: robot_state_publisher with a URDF, and RViz with this package's configuration."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from adahi_ros.nodes.launching.arguments import check_file, with_arguments_checked
from adahi_ros.nodes.launching.exits import fail_with_it
from adahi_ros.nodes.launching.packages import is_wanted

CONFIG = Path(__file__).absolute().parents[1] / "config"


def root_link(urdf: Path) -> str:
    """Return the root link: the fixed frame of the robot.

    Raises:
        ValueError: the file is not a URDF of one robot; the message names the argument.
    """
    try:
        robot = ElementTree.parse(urdf).getroot()
    except ElementTree.ParseError as error:
        raise ValueError(f"urdf: {urdf} is no XML, {error}") from None
    hanging = {child.get("link") for child in robot.findall("joint/child")}
    roots = [str(link.get("name")) for link in robot.findall("link") if link.get("name") not in hanging]
    if len(roots) != 1:
        raise ValueError(f"urdf: {urdf} has {roots} as its first links, must have one")
    return roots[0]


def start(context: LaunchContext) -> list[Node]:
    check_file(context, "urdf")
    urdf = Path(LaunchConfiguration("urdf").perform(context))
    root, nodes = root_link(urdf), []
    time = {"use_sim_time": ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool)}
    if is_wanted(context, "robot_state_publisher"):
        text = ParameterValue(urdf.read_text(), value_type=str)
        nodes.append(
            Node(
                package="robot_state_publisher",
                executable="robot_state_publisher",
                name="robot_state_publisher",
                namespace=LaunchConfiguration("namespace"),
                parameters=[{"robot_description": text, **time}],
                output="screen",
                on_exit=fail_with_it,
            )
        )
    if is_wanted(context, "rviz", "rviz2"):
        nodes.append(
            Node(
                package="rviz2",
                executable="rviz2",
                name="rviz2",
                namespace=LaunchConfiguration("namespace"),
                parameters=[time],
                arguments=["-d", LaunchConfiguration("rviz_config"), "-f", root],
                output="log",
            )
        )
    return nodes


def generate_launch_description() -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument(
            "urdf", default_value=str(CONFIG / "urdf" / "panda.urdf"), description="File of the robot's URDF"
        ),
        DeclareLaunchArgument(
            "robot_state_publisher",
            default_value="auto",
            choices=["auto", "true", "false"],
            description="Publish /tf and robot_description; auto: if robot_state_publisher is installed",
        ),
        DeclareLaunchArgument(
            "rviz",
            default_value="false",
            choices=["auto", "true", "false"],
            description="Start RViz; auto: if rviz2 is installed",
        ),
        DeclareLaunchArgument(
            "rviz_config",
            default_value=str(CONFIG / "rviz" / "adahi.rviz"),
            description="File of RViz's displays; the fixed frame is the robot's root link",
        ),
        DeclareLaunchArgument("namespace", default_value="", description="Namespace of the robot"),
        DeclareLaunchArgument("use_sim_time", default_value="false", description="Take the time from /clock"),
    ]
    return with_arguments_checked(LaunchDescription([*arguments, OpaqueFunction(function=start)]))

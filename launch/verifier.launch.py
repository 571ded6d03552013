# SPDX-License-Identifier: Apache-2.0
"""Starts the target verifier node, on the machine with the target policy."""

from __future__ import annotations

from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, IncludeLaunchDescription, OpaqueFunction
from launch.conditions import IfCondition
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import (
    EnvironmentVariable,
    LaunchConfiguration,
    PathJoinSubstitution,
)
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from adahi_ros.core.assets import asset
from adahi_ros.nodes.launching.arguments import (
    ENCLAVE,
    check_file,
    checkpoint_of,
    with_arguments_checked,
)
from adahi_ros.nodes.launching.exits import (
    ENDS_WITH_LAUNCH,
    RESPAWN,
    RESPAWN_DELAY_S,
    fail_with_it,
    leave_interrupts_to_launch,
)


def generate_launch_description() -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument(
            "namespace", default_value="", description="Namespace of the node, such as the robot's"
        ),
        DeclareLaunchArgument(
            "params_file",
            default_value="",
            description="ROS parameter file of the verifier: target, rule and device; '' for the shipped "
            "config/verifier.yaml, which names no target",
        ),
        DeclareLaunchArgument(
            "verifier_defaults_file",
            default_value="",
            description="ROS parameter file with values that params_file does not set; '' for none",
        ),
        DeclareLaunchArgument(
            "target",
            default_value="",
            description="Target to serve: a YAML file of a third-party policy, or a checkpoint by path or "
            "name; '' for the value in params_file",
        ),
        DeclareLaunchArgument(
            "verifier_namespace",
            default_value="",
            description="Namespace of the verifier's services, such as /server for several robots; '' for "
            "the node's own",
        ),
        DeclareLaunchArgument(
            "robots",
            default_value="",
            description="Names (robot_id) of the robots that may send requests, as r1,r2. Each gets its own "
            "services below verifier_namespace, such as /r1/verify_draft, and only its own replies; '' for "
            "the value in params_file",
        ),
        DeclareLaunchArgument(
            "autostart",
            default_value="true",
            description="Configure and activate the node when it starts; if false, use 'ros2 lifecycle set'",
        ),
        DeclareLaunchArgument("use_respawn", default_value="false", description=RESPAWN),
        DeclareLaunchArgument("use_sim_time", default_value="false", description="Take the time from /clock"),
        DeclareLaunchArgument("enclave", default_value="/", description=ENCLAVE),
        DeclareLaunchArgument("log_level", default_value="info", description="debug, info, warn, error"),
    ]
    dds = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(Path(__file__).with_name("dds.launch.py")))
    )
    check = OpaqueFunction(function=check_files)
    nodes = GroupAction(
        [dds, OpaqueFunction(function=leave_interrupts_to_launch), OpaqueFunction(function=start)]
    )
    return with_arguments_checked(LaunchDescription([*arguments, check, nodes]))


def check_files(context: LaunchContext) -> None:
    given = context.launch_configurations
    if not given["params_file"]:
        given["params_file"] = str(asset("config/verifier.yaml"))
    check_file(context, "params_file")
    if given["verifier_defaults_file"]:
        check_file(context, "verifier_defaults_file")
    checkpoint_of(context, "target")


def start(context: LaunchContext) -> list[Node]:
    target = checkpoint_of(context, "target")
    robots = [
        name.strip() for name in LaunchConfiguration("robots").perform(context).split(",") if name.strip()
    ]
    defaults = LaunchConfiguration("verifier_defaults_file").perform(context)
    respawn = IfCondition(LaunchConfiguration("use_respawn")).evaluate(context)
    node = Node(
        package="adahi_ros",
        executable="target_verifier_node",
        name="target_verifier",
        namespace=LaunchConfiguration("namespace"),
        parameters=[
            *([defaults] if defaults else []),
            LaunchConfiguration("params_file"),
            {"checkpoint": ParameterValue(target, value_type=str)} if target else {},
            {"robots": robots} if robots else {},
            {"autostart": ParameterValue(LaunchConfiguration("autostart"), value_type=bool)},
            {"use_sim_time": ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool)},
        ],
        remappings=[
            (name, PathJoinSubstitution([LaunchConfiguration("verifier_namespace"), name]))
            for name in ("describe_target", "verify_draft", "assignments")
        ],
        arguments=[
            *("--ros-args", "--log-level", LaunchConfiguration("log_level")),
            *("--enclave", LaunchConfiguration("enclave")),
        ],
        # An emulator of a link sets it, so that this job runs at the server's end.
        prefix=EnvironmentVariable(
            "ADAHI_SERVER_PREFIX", default_value=LaunchConfiguration("launch-prefix", default="")
        ),
        additional_env=ENDS_WITH_LAUNCH,
        output="screen",
        respawn=respawn,
        respawn_delay=RESPAWN_DELAY_S,
        on_exit=None if respawn else fail_with_it,
    )
    return [node]

# SPDX-License-Identifier: Apache-2.0
"""Starts the draft policy node of one robot; use `robot.launch.py` for a real robot."""

from __future__ import annotations

from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, IncludeLaunchDescription, OpaqueFunction
from launch.conditions import IfCondition
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from adahi_ros.nodes.launching.arguments import ENCLAVE, check_file, with_arguments_checked
from adahi_ros.nodes.launching.exits import (
    ENDS_WITH_LAUNCH,
    RESPAWN,
    RESPAWN_DELAY_S,
    fail_with_it,
    leave_interrupts_to_launch,
)

OF_THE_ROBOT = {  # arguments; '' keeps the value in params_file
    "draft_checkpoint": ("checkpoint", str, "DIRECTORY/NAME of the draft policy's checkpoint"),
    "contract": ("contract", str, "Name or YAML file of the contract: observation and action"),
    "command_lockstep": (
        "command.lockstep",
        bool,
        "Commands carry the stamp of their observation, for a simulator in lockstep; never with a controller",
    ),
    "safety_limits": ("safety.limits", str, "Name or file of the limits that no command may leave, or none"),
    "require_limits": ("safety.require_limits", bool, "Refuse to be configured without limits"),
    "hold_after_s": ("safety.hold_after_s", float, "Hold the robot after this time without an observation"),
    "require_enable": ("safety.require_enable", bool, "Move only while enable or ~/set_enabled allows it"),
    "fallback": (
        "fallback",
        str,
        "Without the target's reply: hold after fallback_limit steps, or draft acts alone",
    ),
    "fallback_limit": (
        "fallback_limit",
        int,
        "With fallback:=hold, how many steps in a row the draft may act alone",
    ),
    "hedge": ("verification.hedge", str, "When backup_verifiers also get requests: late, at_once, off"),
    "vision": ("verification.vision", str, "What the target sees of camera images: features, jpeg, none"),
}


def generate_launch_description() -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument("namespace", default_value="", description="Namespace of the robot"),
        DeclareLaunchArgument(
            "params_file",
            default_value="",  # which is refused: shipped files are for other robots
            description="ROS parameter file of this robot",
        ),
        *(
            DeclareLaunchArgument(
                name, default_value="", description=f"{about}; '' for the value in params_file"
            )
            for name, (_, _, about) in OF_THE_ROBOT.items()
        ),
        DeclareLaunchArgument(
            "robot_id",
            default_value="robot",
            description="Name of this robot at the verifier; its random draws depend on it, so each robot "
            "needs its own",
        ),
        DeclareLaunchArgument(
            "run_policy",
            default_value="false",
            description="Also start the policy runner; goals of its ROS action run_policy then configure and "
            "activate the policy",
        ),
        DeclareLaunchArgument(
            "runner_params_file",
            default_value="",
            description="ROS parameter file of the policy runner; '' for its defaults",
        ),
        DeclareLaunchArgument(
            "autostart",
            default_value="true",
            description="Configure and activate the node when it starts; if false, use 'ros2 lifecycle set'",
        ),
        DeclareLaunchArgument("use_respawn", default_value="false", description=RESPAWN),
        DeclareLaunchArgument(
            "verifier_namespace",
            default_value="",
            description="Namespace of the verifier's services, such as /server for several robots; '' for "
            "the node's own",
        ),
        DeclareLaunchArgument(
            "backup_verifiers",
            default_value="",
            description="Namespaces of more verifiers of the same target, such as /server_2, separated by ;; "
            "'' for the value in params_file",
        ),
        DeclareLaunchArgument("use_sim_time", default_value="false", description="Take the time from /clock"),
        DeclareLaunchArgument("enclave", default_value="/", description=ENCLAVE),
        DeclareLaunchArgument("log_level", default_value="info", description="debug, info, warn, error"),
    ]
    dds = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(Path(__file__).with_name("dds.launch.py")))
    )
    check = OpaqueFunction(function=check_params_file)
    nodes = GroupAction(
        [dds, OpaqueFunction(function=leave_interrupts_to_launch), OpaqueFunction(function=start)]
    )
    return with_arguments_checked(LaunchDescription([*arguments, check, nodes]))


def check_params_file(context: LaunchContext) -> None:
    if not context.launch_configurations["params_file"]:
        raise ValueError("params_file: '', must be given: the ROS parameter file of this robot")
    check_file(context, "params_file")
    if LaunchConfiguration("runner_params_file").perform(context):
        check_file(context, "runner_params_file")


def start(context: LaunchContext) -> list[Node]:
    given = {
        parameter: ParameterValue(LaunchConfiguration(name), value_type=kind)
        for name, (parameter, kind, _) in OF_THE_ROBOT.items()
        if LaunchConfiguration(name).perform(context)
    }
    backups = LaunchConfiguration("backup_verifiers").perform(context)
    if backups:
        given["verification.backups"] = [name.strip() for name in backups.split(";")]
    respawn = IfCondition(LaunchConfiguration("use_respawn")).evaluate(context)
    by_goals = IfCondition(LaunchConfiguration("run_policy")).evaluate(context)
    autostart = not by_goals and IfCondition(LaunchConfiguration("autostart")).evaluate(context)
    sim_time = {"use_sim_time": ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool)}
    of_all = {
        "package": "adahi_ros",
        "namespace": LaunchConfiguration("namespace"),
        "arguments": [
            *("--ros-args", "--log-level", LaunchConfiguration("log_level")),
            *("--enclave", LaunchConfiguration("enclave")),
        ],
        "additional_env": ENDS_WITH_LAUNCH,
        "output": "screen",
        "respawn": respawn,
        "respawn_delay": RESPAWN_DELAY_S,
        "on_exit": None if respawn else fail_with_it,
    }
    draft = Node(
        executable="draft_policy_node",
        name="draft_policy",
        parameters=[
            LaunchConfiguration("params_file"),
            {
                "robot_id": ParameterValue(LaunchConfiguration("robot_id"), value_type=str),
                "autostart": autostart,
                **sim_time,
                **given,
            },
        ],
        remappings=[
            (name, PathJoinSubstitution([LaunchConfiguration("verifier_namespace"), name]))
            for name in ("describe_target", "verify_draft", "assignments")
        ],
        **of_all,
    )
    if not by_goals:
        return [draft]
    file = LaunchConfiguration("runner_params_file")
    runner = Node(
        executable="policy_runner_node",
        name="policy_runner",
        parameters=[*([file] if file.perform(context) else []), sim_time],
        **of_all,
    )
    return [draft, runner]

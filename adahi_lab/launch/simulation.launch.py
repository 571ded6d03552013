# SPDX-License-Identifier: Apache-2.0
"""Starts the robot simulator node; the whole launch ends when its episodes are over."""

from __future__ import annotations

from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    GroupAction,
    IncludeLaunchDescription,
    OpaqueFunction,
    Shutdown,
)
from launch.events.process import ProcessExited
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from adahi_lab.nodes.chosen import BOOLEAN, Chosen
from adahi_lab.nodes.command_inputs import INTERFACES
from adahi_ros.core.assets import asset
from adahi_ros.nodes.launching.arguments import ENCLAVE, with_arguments_checked
from adahi_ros.nodes.launching.exits import ENDS_WITH_LAUNCH, fail_with_it, leave_interrupts_to_launch

CHOSEN = {"": "joint_trajectory"} | {name: name for name in INTERFACES}


def end_with_it(event: ProcessExited, context: LaunchContext) -> Shutdown | None:
    """Shut down when the episodes are over, unless the launch is shutting down already."""
    fail_with_it(event, context)
    return None if context.is_shutdown else Shutdown(reason="the simulation is over")


def generate_launch_description() -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument("namespace", default_value="", description="Namespace of the robot"),
        DeclareLaunchArgument(
            "task",
            default_value="ball",
            description="Task to simulate: ball, swarm, metaworld or another one, or a YAML file",
        ),
        DeclareLaunchArgument("seed", default_value="0", description="Seed of the simulator's random draws"),
        DeclareLaunchArgument(
            "episodes", default_value="0", description="Number of episodes before it ends; 0 for no end"
        ),
        DeclareLaunchArgument(
            "lockstep",
            default_value="false",
            choices=BOOLEAN,
            description="Wait for the command to every state: run as fast as the policy",
        ),
        DeclareLaunchArgument(
            "command_interface",
            default_value="",
            choices=list(CHOSEN),
            description="Message type of command: joint_trajectory, forward_command, joint_jog or twist; '' "
            "for joint_trajectory",
        ),
        DeclareLaunchArgument(
            "contract",
            default_value="",
            description="Name or file of a contract: take actions on its topics; '' for the topic command",
        ),
        DeclareLaunchArgument(
            "demonstrate",
            default_value="false",
            description="Let the task's expert act, and publish command as a teleoperator would",
        ),
        DeclareLaunchArgument(
            "action_noise",
            default_value="0.1",
            description="Noise in a demonstration, executed but not published: share of half the range",
        ),
        DeclareLaunchArgument(
            "speed",
            default_value="1.0",
            description="Simulated seconds per second; other than 1, the simulator publishes /clock",
        ),
        DeclareLaunchArgument(
            "wait_for_subscribers",
            default_value="0",
            description="Wait for this number of subscribers to each recorded topic before the first state",
        ),
        DeclareLaunchArgument("use_sim_time", default_value="false", description="Take the time from /clock"),
        DeclareLaunchArgument("enclave", default_value="/", description=ENCLAVE),
        DeclareLaunchArgument("log_level", default_value="info", description="debug, info, warn, error"),
    ]
    node = Node(
        package="adahi_lab",
        executable="robot_simulator_node",
        name="robot_simulator",
        namespace=LaunchConfiguration("namespace"),
        parameters=[
            {
                "task": ParameterValue(LaunchConfiguration("task"), value_type=str),
                "seed": ParameterValue(LaunchConfiguration("seed"), value_type=int),
                "episodes": ParameterValue(LaunchConfiguration("episodes"), value_type=int),
                "lockstep": ParameterValue(LaunchConfiguration("lockstep"), value_type=bool),
                "command_interface": Chosen("command_interface", CHOSEN),
                "contract": ParameterValue(LaunchConfiguration("contract"), value_type=str),
                "demonstrate": ParameterValue(LaunchConfiguration("demonstrate"), value_type=bool),
                "action_noise": ParameterValue(LaunchConfiguration("action_noise"), value_type=float),
                "speed": ParameterValue(LaunchConfiguration("speed"), value_type=float),
                "wait_for_subscribers": ParameterValue(
                    LaunchConfiguration("wait_for_subscribers"), value_type=int
                ),
                "use_sim_time": ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool),
            }
        ],
        arguments=[
            *("--ros-args", "--log-level", LaunchConfiguration("log_level")),
            *("--enclave", LaunchConfiguration("enclave")),
        ],
        additional_env=ENDS_WITH_LAUNCH,
        output="screen",
        on_exit=end_with_it,
    )
    dds = IncludeLaunchDescription(PythonLaunchDescriptionSource(str(asset("launch/dds.launch.py"))))
    return with_arguments_checked(
        LaunchDescription(
            [*arguments, GroupAction([dds, OpaqueFunction(function=leave_interrupts_to_launch), node])]
        )
    )

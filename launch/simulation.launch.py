"""The robot simulator node; what was launched with it ends when its episodes are over."""

from __future__ import annotations

from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, IncludeLaunchDescription, Shutdown
from launch.events.process import ProcessExited
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue


def end_with_it(event: ProcessExited, context: LaunchContext) -> Shutdown | None:
    """Shut down once the episodes are over; not again where that is why the simulator ended."""
    return None if context.is_shutdown else Shutdown(reason="the simulation is over")


def generate_launch_description() -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument("namespace", default_value="", description="Namespace of the robot"),
        DeclareLaunchArgument(
            "task",
            default_value="ball",
            description="What is simulated: ball, kitchen, swarm, or a YAML file of another",
        ),
        DeclareLaunchArgument("seed", default_value="0", description="Seed of the world's draws"),
        DeclareLaunchArgument(
            "episodes", default_value="0", description="How many to run before it ends; 0 for no end"
        ),
        DeclareLaunchArgument(
            "lockstep",
            default_value="false",
            description="Wait for the command to every state, and so run as fast as the policy",
        ),
        DeclareLaunchArgument("use_sim_time", default_value="false", description="Take the time from /clock"),
        DeclareLaunchArgument("log_level", default_value="info", description="debug, info, warn, error"),
    ]
    node = Node(
        package="adahi_ros",
        executable="robot_simulator_node",
        name="robot_simulator",
        namespace=LaunchConfiguration("namespace"),
        parameters=[
            {
                "task": ParameterValue(LaunchConfiguration("task"), value_type=str),
                "seed": ParameterValue(LaunchConfiguration("seed"), value_type=int),
                "episodes": ParameterValue(LaunchConfiguration("episodes"), value_type=int),
                "lockstep": ParameterValue(LaunchConfiguration("lockstep"), value_type=bool),
                "use_sim_time": ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool),
            }
        ],
        arguments=["--ros-args", "--log-level", LaunchConfiguration("log_level")],
        output="screen",
        on_exit=end_with_it,
    )
    dds = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(Path(__file__).with_name("dds.launch.py")))
    )
    return LaunchDescription([*arguments, GroupAction([dds, node])])

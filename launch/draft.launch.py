"""The draft policy node of one robot, configured and activated."""

from __future__ import annotations

from pathlib import Path

from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    GroupAction,
    IncludeLaunchDescription,
    RegisterEventHandler,
)
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessStart
from launch.events import matches_action
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode
from launch_ros.event_handlers import OnStateTransition
from launch_ros.events.lifecycle import ChangeState
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare
from lifecycle_msgs.msg import Transition


def generate_launch_description() -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument("namespace", default_value="", description="Namespace of the robot"),
        DeclareLaunchArgument(
            "task", default_value="ball", description="Whose shipped files are the defaults"
        ),
        DeclareLaunchArgument(
            "params_file",
            default_value=[FindPackageShare("adahi_ros"), "/config/", LaunchConfiguration("task"), ".yaml"],
            description="ROS parameter file, such as 'adahi calibrate' writes",
        ),
        DeclareLaunchArgument(
            "robot_id",
            default_value="robot",
            description="Names the robot's stream of random draws at the verifier; each robot its own",
        ),
        DeclareLaunchArgument(
            "autostart",
            default_value="true",
            description="Configure and activate the node when it starts; else 'ros2 lifecycle set' does",
        ),
        DeclareLaunchArgument(
            "verifier_namespace",
            default_value="",
            description="Namespace of the verifier's services, such as /server where robots share it; "
            "empty for the node's own",
        ),
        DeclareLaunchArgument("use_sim_time", default_value="false", description="Take the time from /clock"),
        DeclareLaunchArgument("log_level", default_value="info", description="debug, info, warn, error"),
    ]
    node = LifecycleNode(
        package="adahi_ros",
        executable="draft_policy_node",
        name="draft_policy",
        namespace=LaunchConfiguration("namespace"),
        parameters=[
            LaunchConfiguration("params_file"),
            {
                "robot_id": ParameterValue(LaunchConfiguration("robot_id"), value_type=str),
                "use_sim_time": ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool),
            },
        ],
        remappings=[
            (service, PathJoinSubstitution([LaunchConfiguration("verifier_namespace"), service]))
            for service in ("describe_target", "verify_draft")
        ],
        arguments=["--ros-args", "--log-level", LaunchConfiguration("log_level")],
        output="screen",
    )

    def change(transition: int) -> EmitEvent:
        return EmitEvent(
            event=ChangeState(lifecycle_node_matcher=matches_action(node), transition_id=transition)
        )

    configure = OnProcessStart(target_action=node, on_start=[change(Transition.TRANSITION_CONFIGURE)])
    activate = OnStateTransition(
        target_lifecycle_node=node,
        start_state="configuring",
        goal_state="inactive",
        entities=[change(Transition.TRANSITION_ACTIVATE)],
        handle_once=True,  # who configures it again by hand does not want it to move
    )
    autostart = GroupAction(
        [RegisterEventHandler(configure), RegisterEventHandler(activate)],
        condition=IfCondition(LaunchConfiguration("autostart")),
    )
    dds = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(Path(__file__).with_name("dds.launch.py")))
    )
    return LaunchDescription([*arguments, autostart, GroupAction([dds, node])])

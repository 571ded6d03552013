"""Simulation, draft policy and target verifier on one machine; takes the arguments of all three."""

from __future__ import annotations

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PythonExpression

JOBS = ("verifier", "draft", "simulation")


def generate_launch_description() -> LaunchDescription:
    files = [Path(__file__).with_name(f"{job}.launch.py") for job in JOBS]
    lockstep = LaunchConfiguration("lockstep", default="false")
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "hold_after_s",
                default_value=PythonExpression(["'60.0' if '", lockstep, "'.lower() == 'true' else ''"]),
                description="Without an observation for so long, the robot is held; where it is empty, "
                "params_file says it. In lockstep 60: the world waits, however long a step takes",
            ),
            *(IncludeLaunchDescription(PythonLaunchDescriptionSource(str(file))) for file in files),
        ]
    )

"""Simulation, draft policy and target verifier on one machine; takes the arguments of all three."""

from __future__ import annotations

from pathlib import Path

from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

JOBS = ("verifier", "draft", "simulation")


def generate_launch_description() -> LaunchDescription:
    files = [Path(__file__).with_name(f"{job}.launch.py") for job in JOBS]
    return LaunchDescription(
        [IncludeLaunchDescription(PythonLaunchDescriptionSource(str(file))) for file in files]
    )

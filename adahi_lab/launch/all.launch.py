# SPDX-License-Identifier: Apache-2.0
"""Simulation, draft policy and target verifier on one machine; takes the arguments of all three."""

from __future__ import annotations

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction
from launch.launch_description_sources import get_launch_description_from_python_launch_file

from adahi_ros.nodes.launching.arguments import BOOLEAN, ArgumentsCheck, Chosen, with_arguments_checked

JOBS = ("verifier", "draft", "simulation")


def generate_launch_description() -> LaunchDescription:
    files = [str(Path(__file__).with_name(f"{job}.launch.py")) for job in JOBS]
    entities = [e for file in files for e in get_launch_description_from_python_launch_file(file).entities]
    # Check files before the first node starts, in a group: if an action raises, launch ends, but a process
    # that is just starting keeps running.
    nodes = [entity for entity in entities if isinstance(entity, GroupAction)]
    before = [each for each in entities if not isinstance(each, (GroupAction, ArgumentsCheck))]

    def in_lockstep(text: str) -> Chosen:
        texts = {value: text if value.lower() == "true" else "" for value in BOOLEAN}
        return Chosen("lockstep", texts, default="false")

    description = LaunchDescription(
        [
            DeclareLaunchArgument(
                "require_enable",
                default_value="false",
                description="Move the simulated robot only while enable or ~/set_enabled allows it; "
                "'' for the value in params_file",
            ),
            DeclareLaunchArgument(
                "hold_after_s",
                default_value=in_lockstep("60.0"),
                description="Hold the robot after this time without an observation, s; '' for the value in "
                "params_file. In lockstep 60, because the simulator waits for each step",
            ),
            DeclareLaunchArgument(
                "command_lockstep",
                default_value=in_lockstep("true"),
                description="Commands carry the stamp of their observation; '' for the value in params_file. "
                "In lockstep true, because the simulator waits for the command to each state",
            ),
            *before,
            *nodes,
        ]
    )
    return with_arguments_checked(description)

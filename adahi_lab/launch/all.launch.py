# SPDX-License-Identifier: Apache-2.0
"""Simulation, draft policy and target verifier on one machine; takes the arguments of all three."""

from __future__ import annotations

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, OpaqueFunction, SetLaunchConfiguration
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.launch_description_sources import get_launch_description_from_python_launch_file
from launch.substitutions import LaunchConfiguration

from adahi_lab.nodes.chosen import BOOLEAN, Chosen
from adahi_lab.nodes.method_files import parameter_files, verifier_defaults
from adahi_ros.core.assets import asset
from adahi_ros.nodes.launching.arguments import ArgumentsCheck, check_file, with_arguments_checked

JOBS = ("verifier", "draft", "simulation")
VERIFIER = "verifier"
OURS = ("params_file", "verifier_params_file")  # arguments with other defaults than in those files
OF_CONTRACT = "command_interface"  # of the simulation alone; here the contract is of both


def name_files(context: LaunchContext) -> None:
    """Name the parameter files of method and task where none are given."""
    given = context.launch_configurations
    if not all(given[name] for name in OURS):
        made = parameter_files(given["method"], given["task"])
        given.update({name: str(file) for name, file in zip(OURS, made, strict=True) if not given[name]})
    check_file(context, OURS[1])  # by its name here
    if not given["verifier_defaults_file"]:
        given["verifier_defaults_file"] = str(verifier_defaults(given["task"]))


def entities_of(job: str) -> list[LaunchDescriptionEntity]:
    """Return the entities of a job's launch file; there the verifier's file has the name of the robot's."""
    file = str(asset(f"launch/{job}.launch.py"))
    entities = get_launch_description_from_python_launch_file(file).entities
    if job != VERIFIER:
        return entities
    ours, theirs = OURS
    named = SetLaunchConfiguration(ours, LaunchConfiguration(theirs))
    kept = DeclareLaunchArgument, ArgumentsCheck
    return [each if isinstance(each, kept) else GroupAction([named, each]) for each in entities]


def generate_launch_description() -> LaunchDescription:
    entities = [entity for job in JOBS for entity in entities_of(job)]
    left_out = (*OURS, OF_CONTRACT)
    entities = [e for e in entities if not isinstance(e, DeclareLaunchArgument) or e.name not in left_out]
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
                "method",
                default_value="adahi",
                description="adahi, the paper's; best, the recommended one; or one of 'adahi methods', for "
                "which parameter files are made",
            ),
            *(
                DeclareLaunchArgument(
                    name,
                    default_value="",
                    description=f"ROS parameter file of the {node}; '' for the method's",
                )
                for name, node in zip(OURS, ("draft policy", "verifier"), strict=True)
            ),
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
            *(each for each in before if isinstance(each, DeclareLaunchArgument)),
            OpaqueFunction(function=name_files),
            *(each for each in before if not isinstance(each, DeclareLaunchArgument)),
            *nodes,
        ]
    )
    return with_arguments_checked(description)

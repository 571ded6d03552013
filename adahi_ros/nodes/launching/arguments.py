# SPDX-License-Identifier: Apache-2.0
"""What a launch file is told: files that are not there, and arguments that nobody takes."""

from __future__ import annotations

import difflib
from pathlib import Path

from launch.actions import OpaqueFunction
from launch.launch_context import LaunchContext
from launch.launch_description import LaunchDescription
from launch.logging import get_logger

from adahi_ros.policies.backends import DESCRIBED

ENCLAVE = (
    "SROS 2 enclave of the nodes, such as /adahi/r1, whose keys they have if ROS_SECURITY_ENABLE is true"
)


def check_file(context: LaunchContext, argument: str, hint: str = "") -> None:
    """Refuse a parameter file that is missing; launch_ros would warn, and start on defaults.

    Raises:
        ValueError: there is no such file.
    """
    file = Path(context.launch_configurations[argument])
    if not file.is_file():
        raise ValueError(f"{argument}: there is no file {file.absolute()}{hint}")


def checkpoint_of(context: LaunchContext, argument: str) -> str:
    """Return what a node's parameter `checkpoint` is to be, so that a path may be relative to where we are.

    What is not here is a name of the package's; an empty one is left empty.

    Raises:
        ValueError: it is a YAML file that is not there.
    """
    value = context.launch_configurations[argument]
    path = Path(value).expanduser().absolute()
    if value and any(path.with_name(path.name + suffix).exists() for suffix in ("", ".json", ".yaml")):
        return str(path)
    if path.suffix in DESCRIBED:
        raise ValueError(f"{argument}: there is no file {path}")
    return value


class ArgumentsCheck(OpaqueFunction):
    """Warns of arguments on the command line that a launch file does not declare; launch ignores them.

    To be the first entity: where another launch file includes this one, there are configurations by then that
    were not on the command line, and what was may be for that file.

    Args:
        description: of the launch file.
    """

    def __init__(self, description: LaunchDescription) -> None:
        super().__init__(function=self._check)
        self._description = description

    def _check(self, context: LaunchContext) -> None:
        given = [argument.partition(":=")[0] for argument in context.argv]
        if set(context.launch_configurations) != set(given):
            return
        declared = [argument.name for argument in self._description.get_launch_arguments()]
        for name in given:
            if name not in declared:
                near = difflib.get_close_matches(name, declared, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(declared))}"
                get_logger("launch").warning(f"{name}: no argument of this launch file, ignored; {hint}")


def with_arguments_checked(description: LaunchDescription) -> LaunchDescription:
    """Return a description that begins with its `ArgumentsCheck`."""
    return LaunchDescription([ArgumentsCheck(description), *description.entities])

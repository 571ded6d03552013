# SPDX-License-Identifier: Apache-2.0
"""Launch arguments: checks for missing files and undeclared arguments, and texts that depend on one."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from launch.actions import OpaqueFunction
from launch.launch_context import LaunchContext
from launch.launch_description import LaunchDescription
from launch.logging import get_logger

from adahi_ros.core.texts import abridged
from adahi_ros.policies.backends import DESCRIBED

RENAMED = {"respawn": "use_respawn", "verifier_params_file": "params_file"}
"""Names of arguments until 0.3.0, and those of today, which are nav2's."""
ENCLAVE = "SROS 2 enclave of the nodes, such as /adahi/r1; they use its keys if ROS_SECURITY_ENABLE is true"


def check_file(context: LaunchContext, argument: str, hint: str = "") -> None:
    """Check that a parameter file exists; launch_ros would only warn, and use the defaults.

    Raises:
        ValueError: there is no such file.
    """
    file = Path(context.launch_configurations[argument])
    if not os.path.isfile(file):  # pathlib's would raise for a name that is too long
        raise ValueError(f"{argument}: there is no file {abridged(str(file.absolute()))}{hint}")


def checkpoint_of(context: LaunchContext, argument: str) -> str:
    """Return the value of a node's parameter `checkpoint`, with a relative path made absolute.

    A value that is no existing path stays as it is: it names a shipped checkpoint, or is empty.

    Raises:
        ValueError: it is a YAML file that does not exist.
    """
    value = context.launch_configurations[argument]
    path = Path(os.path.expanduser(value)).absolute()
    if value and any(os.path.exists(path.with_name(path.name + suffix)) for suffix in ("", ".json", ".yaml")):
        return str(path)
    if path.suffix in DESCRIBED:
        raise ValueError(f"{argument}: there is no file {abridged(str(path))}")
    return value


class ArgumentsCheck(OpaqueFunction):
    """Warns of arguments on the command line that a launch file does not declare; launch ignores them.

    It must be the first entity. In an included launch file it warns of none: there are then configurations
    that are not from the command line, and arguments may be for the including file.

    Args:
        description: of the launch file.

    Raises:
        ValueError: on use; an argument has its former name. Names the new one.
    """

    def __init__(self, description: LaunchDescription) -> None:
        super().__init__(function=self._check)
        self._description = description

    def _check(self, context: LaunchContext) -> None:
        declared = {argument.name for argument in self._description.get_launch_arguments()}
        present = set(context.launch_configurations)
        for former, name in RENAMED.items():
            if former in present - declared and name in declared - present:
                raise ValueError(f"{former}: gone since 0.4.0; its name is {name}")
        given = [argument.partition(":=")[0] for argument in context.argv]
        if present != set(given):
            return
        for name in given:
            if name not in declared:
                near = difflib.get_close_matches(name, sorted(declared), 1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(declared))}"
                get_logger("launch").warning(f"{name}: no argument of this launch file, ignored; {hint}")


def with_arguments_checked(description: LaunchDescription) -> LaunchDescription:
    """Return a description that begins with its `ArgumentsCheck`."""
    return LaunchDescription([ArgumentsCheck(description), *description.entities])

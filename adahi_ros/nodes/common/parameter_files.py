# SPDX-License-Identifier: Apache-2.0
"""Checks that a node's parameter files have a section for it.

ROS silently ignores sections for other nodes: with a misspelt name, a node runs with its defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from adahi_ros.core.parameter_sections import is_for, section_names
from adahi_ros.core.yaml_files import read_yaml


def parameter_files(arguments: Sequence[str]) -> Iterator[Path]:
    """Yield the files that a command line names after --ros-args."""
    among_ros_args = False
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument in ("--ros-args", "--"):
            among_ros_args = argument == "--ros-args"
        elif among_ros_args and argument == "--params-file":
            yield Path(following)


def unheeded(arguments: Sequence[str], node: str) -> Iterator[str]:
    """Yield a warning for each file without a section for a node.

    Args:
        arguments: of the process.
        node: full name of the node.
    """
    for path in parameter_files(arguments):
        try:
            names = list(section_names(read_yaml(path)))
        except (OSError, ValueError):  # ROS could read it
            continue
        if not any(is_for(name, node) for name in names):
            found = f"its sections are for {', '.join(names)}" if names else "it has no section"
            yield f"{path}: nothing in it is for this node, ignored; {found}; must be for {node}, or /**"

# SPDX-License-Identifier: Apache-2.0
"""What a node prints for `--help`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from rclpy.utilities import remove_ros_args

from adahi_ros.core.registry import Argument, arguments_beside
from adahi_ros.nodes.common.parameters import rows


def read_arguments(about: str, parameters: type[Any] | None) -> None:
    """Print `--help` and end; refuse every other argument that is not ROS's."""
    helps = not {"-h", "--help"}.isdisjoint(sys.argv)
    table = list(listed(parameters)) if helps and parameters is not None else []
    width = max((len(row.name) for row, _ in table), default=0)
    lines = "\n".join(
        f"  {row.name:{width}}  {component and f'{component}: '}{row.description} ({row.allowed})"
        for row, component in table
    )
    argparse.ArgumentParser(
        description=about,
        epilog=f"parameters, as --ros-args -p NAME:=VALUE or --params-file FILE:\n{lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args(remove_ros_args(sys.argv)[1:])


def listed(kind: type[Any]) -> Iterator[tuple[Argument, str]]:
    """Iterate over what a dataclass declares, for people: each parameter, and the component that it is of.

    Of components that a parameter names, only those of this package have their arguments here.
    """
    for row in rows(kind):
        yield row, ""
        for name in getattr(row.names, "shipped", ()):
            for each in arguments_beside(row, {row.name: name}.get):
                yield each, name

# SPDX-License-Identifier: Apache-2.0
"""The `--help` of nodes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from rclpy.utilities import remove_ros_args

from adahi_ros.core.registry import Argument, arguments_beside
from adahi_ros.nodes.common.parameters import rows


def read_arguments(about: str, parameters: type[object] | None) -> None:
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


def listed(kind: type[object]) -> Iterator[tuple[Argument, str]]:
    """Iterate over a dataclass's parameters, each with its component; '' for the node's own.

    Arguments of components are listed only for components of this package.
    """
    for row in rows(kind):
        yield row, ""
        for name in getattr(row.names, "shipped", ()):
            for each in arguments_beside(row, {row.name: name}.get):
                yield each, name

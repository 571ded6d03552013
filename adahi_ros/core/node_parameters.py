# SPDX-License-Identifier: Apache-2.0
"""A node's values in a ROS parameter file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adahi_ros.core.parameter_sections import is_for, sections


def parameters_for(content: object, node: str) -> dict[str, object]:
    """Return a parameter file's values for a node, by the full names of the parameters.

    Args:
        content: of the file.
        node: its full name. Of two sections that apply, the later one takes precedence, as in rcl.
    """
    found: dict[str, Any] = {}
    for name, values in sections(content):
        if is_for(name, node) and isinstance(values, dict):
            found |= dict(_leaves(values, ""))
    return found


def _leaves(values: dict[object, object], within: str) -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{within}{name}.")
        else:
            yield f"{within}{name}", value

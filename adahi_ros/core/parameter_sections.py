# SPDX-License-Identifier: Apache-2.0
"""ROS parameter files: their sections, which apply to a node, and their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

PARAMETERS = "ros__parameters"


def sections(content: object, within: str = "") -> Iterator[tuple[str, object]]:
    """Yield the sections of a parameter file with their values; names as `section_names` has them."""
    for name, section in content.items() if isinstance(content, dict) else ():
        if name == PARAMETERS:
            yield within, section
        else:
            yield from sections(section, f"{within}/{str(name).lstrip('/')}")


def section_names(content: object) -> Iterator[str]:
    """Yield the sections of a parameter file, namespaces first; a name may have * and ** in it."""
    yield from (name for name, _ in sections(content))


def is_for(section: str, node: str) -> bool:
    """Return whether a section applies to a node of that full name, as rcl decides.

    `/*` stands for one part of a name, `/**` for any number of them.
    """
    pattern = re.escape(section).replace(r"/\*\*", r"(/\w+)*").replace(r"/\*", r"/\w+")
    return re.fullmatch(pattern, node) is not None


def nested(parameters: Mapping[str, object]) -> dict[str, Any]:
    """Return parameters by their full names as in a parameter file: nested groups."""
    tree: dict[str, Any] = {}
    for name, value in parameters.items():
        *groups, last = name.split(".")
        within = tree
        for group in groups:
            within = within.setdefault(group, {})
        within[last] = value
    return tree

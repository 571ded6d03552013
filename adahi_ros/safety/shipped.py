# SPDX-License-Identifier: Apache-2.0
"""The limits that come with the package."""

from __future__ import annotations

from pathlib import Path

from adahi_ros.core.assets import asset, shipped

FOLDER = "config/limits"
VARIANTS = ("_camera", "_instructed", "_seen", "_10", "_50")
"""Endings of tasks of the same robot."""


def limits_path(name: str) -> Path:
    """Return the file of this path, or the shipped one of this name.

    Raises:
        FileNotFoundError: there is none.
    """
    return Path(name) if Path(name).suffix else asset(f"{FOLDER}/{name}.yaml")


def limits_of_task(task: str) -> str:
    """Return the name of the shipped limits of a task's robot, the same in all variants; or ''."""
    name = task
    for variant in VARIANTS:
        name = name.removesuffix(variant)
    return name if shipped(f"{FOLDER}/{name}.yaml") else ""

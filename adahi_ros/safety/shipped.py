"""The limits that come with the package."""

from __future__ import annotations

from pathlib import Path

from adahi_ros.assets import asset, shipped

FOLDER = "config/limits"
CAMERA = "_camera"


def limits_path(name: str) -> Path:
    """Return the file of this path, or the shipped one of this name.

    Raises:
        FileNotFoundError: there is none.
    """
    return Path(name) if Path(name).suffix else asset(f"{FOLDER}/{name}.yaml")


def limits_of_task(task: str) -> str:
    """Return the name of the shipped limits of a task's robot, the same with and without a camera; or ''."""
    name = task.removesuffix(CAMERA)
    return name if shipped(f"{FOLDER}/{name}.yaml") else ""

# SPDX-License-Identifier: Apache-2.0
"""Limits named by a parameter, with a check that they exist and can be enforced."""

from __future__ import annotations

import os
from pathlib import Path

from adahi_ros.contract.commanded import Commanded
from adahi_ros.contract.contract import JOINT_STATE, MeasuredPositions
from adahi_ros.core.assets import asset, shipped
from adahi_ros.safety.command_limits import Judge, load_command_limits
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.limits_file import load_limits

NO_LIMITS = "none"
FOLDER = "config/limits"
VARIANTS = ("_camera", "_instructed", "_seen", "_10", "_50")
"""Suffixes of task names with the same robot."""


def named_limits(name: str, required: bool, what: Commanded, measured: MeasuredPositions) -> Limits:
    """Return the limits of this name: from a file, or a shipped one.

    Args:
        name: of the limits, or their file; empty or `NO_LIMITS` for none.
        required: every commanded entry must be limited, unless the name is `NO_LIMITS`.
        what: the commanded entries.
        measured: the entries' positions in an observation.

    Raises:
        ValueError: they do not exist or are not usable; or they are required, and leave an entry without.
            Names the parameter, its value and what is allowed.
    """
    if not name and required:
        raise ValueError(f"safety.limits: '', must name a file of limits, or be {NO_LIMITS}")
    if name in ("", NO_LIMITS):
        return Limits.from_fields(what.names, {})
    try:
        known = set(what.names).difference(measured.unknown)
        limits = load_limits(limits_path(name), what.names, what.fields if required else (), known)
    except (ValueError, OSError) as error:
        raise ValueError(f"safety.limits: {name!r}, cannot be used: {error}") from None
    needing = limits.needing_position(what.fields) if required else {}
    for joint in measured.unknown:
        if joint in needing:
            raise ValueError(
                f"safety.limits: {name!r}, {needing[joint]} of {joint} needs its measured position: the "
                f"contract must observe position.{joint} of a {JOINT_STATE}, or the file leave that limit out"
            )
    return limits


def named_command_limits(name: str, what: Commanded) -> dict[str, Judge]:
    """Return the judges of whole commands in the limits of this name, by key, such as workspace.

    Args:
        name: of the limits, or their file; empty or `NO_LIMITS` for none.
        what: the commanded entries.

    Raises:
        ValueError: the limits cannot be used; names the parameter, its value and what is allowed.
    """
    if name in ("", NO_LIMITS):
        return {}
    try:
        return load_command_limits(limits_path(name), dict(zip(what.names, what.fields, strict=True)))
    except (ValueError, OSError) as error:
        raise ValueError(f"safety.limits: {name!r}, cannot be used: {error}") from None


def limits_warning(name: str, what: Commanded, measured: MeasuredPositions) -> str | None:
    """Return a warning about the limits of this name, for the operator; None for nothing."""
    if name in ("", NO_LIMITS):
        advice = "" if name else "; name a file"
        return f"safety.limits: {name!r}, nothing limits where, and how fast, commands move{advice}"
    unknown = [
        name
        for name, field in zip(what.names, what.fields, strict=True)
        if field == "positions" and name in measured.unknown
    ]
    if unknown:
        return (
            f"contract: does not observe where {', '.join(unknown)} stands; the first command may be far off"
        )
    return None


def limits_path(name: str) -> Path:
    """Return the file of this path, or the shipped one of this name.

    Raises:
        FileNotFoundError: neither exists.
    """
    return Path(os.path.expanduser(name)) if Path(name).suffix else asset(f"{FOLDER}/{name}.yaml")


def limits_of_task(task: str) -> str:
    """Return the name of the shipped limits of a task's robot, equal for all variants; or ''."""
    name = task
    for variant in VARIANTS:
        name = name.removesuffix(variant)
    return name if shipped(f"{FOLDER}/{name}.yaml") else ""

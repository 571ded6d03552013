# SPDX-License-Identifier: Apache-2.0
"""Files of limits: our YAML, MoveIt's joint_limits.yaml, a URDF."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from adahi_ros.core.files import read_bytes
from adahi_ros.core.schema import Listed, Schema, checked, shown
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.safety.command_limits import LIMITS, YAML_SUFFIXES
from adahi_ros.safety.entry_limits import ENTRY_LIMITS, Position, check_order
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.moveit import moveit_limits
from adahi_ros.safety.urdf import urdf_limits

DEFAULT = "default"
URDF_SUFFIXES = (".urdf", ".xml")


Ends = Annotated[Listed[Position], Field(min_length=2, max_length=2)]
_Entries = Annotated[dict[str, dict[object, object]], Field(min_length=1)]
_WHOLE = [(name, object, None) for name in LIMITS if name.isidentifier()]  # read by `load_command_limits`
_File = make_dataclass("_File", [("limits", _Entries), *_WHOLE], bases=(Schema,), frozen=True)


@dataclass(frozen=True)
class _MoveItFile(Schema):
    joint_limits: Annotated[dict[str, Any], Field(min_length=1)]
    default_velocity_scaling_factor: Any = None  # a planner's settings
    default_acceleration_scaling_factor: Any = None


def load_limits(
    path: Path, names: Sequence[str], commanded: Sequence[str] = (), measured: Collection[str] = ()
) -> Limits:
    """Read the limits of some entries.

    There are three kinds of file. Our YAML, where every key of an entry is optional; `default` applies to
    names without an entry:

        limits:
          JOINT: {position: [LOW, HIGH], velocity: V, acceleration: A, max_step: S, effort: E, following: F}
          default: {velocity: V}

    The same file may have limits of the whole command (`safety/command_limits.py`).

    MoveIt's joint_limits.yaml. Or a URDF, which has no accelerations.

    Args:
        path: NAME.yaml, NAME.yml, NAME.urdf or NAME.xml.
        names: the A commanded entries.
        commanded: (A,), the quantity of each entry: its limits must be in the file, `.inf` for none, and one
            of them must be finite (`needed_by`); empty for entries without required limits.
        measured: entries with a measured position, which need more (`needed_if_measured`).

    Raises:
        FileNotFoundError: no such file.
        ValueError: names file, field, value and what was allowed; or the names missing in the file.
    """
    path = Path(path)
    try:
        limits = _named(names, _read(path, names))
        if commanded:
            field_of = dict(zip(names, commanded, strict=True))
            _check_limited(limits, field_of)
            _check_measured(limits, {name: field_of[name] for name in names if name in measured})
        return Limits.from_fields(names, limits)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def joints_of(path: Path) -> frozenset[str]:
    """Return the names that a file of limits, or a URDF, has; none where its `default` serves any name.

    Raises:
        FileNotFoundError: no such file.
        ValueError: as `load_limits`.
    """
    try:
        limits = _read(path, ())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return frozenset() if DEFAULT in limits else frozenset(limits)


def _named(names: Sequence[str], limits: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    missing = [name for name in names if name not in limits]
    if missing and DEFAULT not in limits:
        raise ValueError(
            f"no limits of {', '.join(missing)}, only of {', '.join(map(str, limits)) or 'none'}"
        )
    return {name: limits.get(name, limits.get(DEFAULT, {})) for name in names}


def _check_limited(limits: dict[str, dict[str, float]], field_of: Mapping[str, str]) -> None:
    """Check that each entry is limited, and that no limit was forgotten."""
    for name, entry in limits.items():
        limited, commanded = False, field_of[name]
        needed = [quantity for quantity, limit in ENTRY_LIMITS.items() if commanded in limit.needed_by]
        for quantity in needed:
            values = [value for field, value in entry.items() if field.startswith(quantity)]
            if not values:
                raise ValueError(f"{name}.{quantity}: missing, must be there for commanded {commanded}")
            limited |= all(map(math.isfinite, values))
        if not limited:
            some = " or ".join(needed)
            raise ValueError(f"{name}: nothing limits commanded {commanded}, {some} must be finite")


def _check_measured(limits: dict[str, dict[str, float]], field_of: Mapping[str, str]) -> None:
    """Check that no limit relative to the measured position was forgotten."""
    for name, commanded in field_of.items():
        for quantity, limit in ENTRY_LIMITS.items():
            if commanded in limit.needed_if_measured and quantity not in limits[name]:
                raise ValueError(
                    f"{name}.{quantity}: missing, must be there for commanded {commanded} that are measured: "
                    f"the largest distance of a command from the measured position, or .inf for none; only "
                    f"{' and '.join(YAML_SUFFIXES)} with `limits:` can give it"
                )


def _read(path: Path, wanted: Collection[str]) -> dict[str, dict[str, float]]:
    """Return all names in a file, and the limits of wanted ones by field; of our YAML, those of all."""
    if path.suffix in URDF_SUFFIXES:
        return _of_joints(urdf_limits(read_bytes(path), wanted))
    if path.suffix not in YAML_SUFFIXES:
        allowed = ", ".join((*YAML_SUFFIXES, *URDF_SUFFIXES))
        raise ValueError(f"suffix: {shown(path.suffix)}, must be one of {allowed} (of a xacro, make a URDF)")
    values = read_yaml(path)
    if isinstance(values, dict) and "joint_limits" in values:
        joints = checked(_MoveItFile, values).joint_limits
        where = "joint_limits"
        limits = {name: moveit_limits(f"{where}.{name}", joints[name]) for name in joints if name in wanted}
        return _of_joints({key: {} for key in joints} | limits)
    entries = checked(_File, values).limits
    return {name: _entry(f"limits.{name}", entry) for name, entry in entries.items()}


def _of_joints(limits: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Check that no joint has the name that stands for all others in a file with `limits:`; return them."""
    if DEFAULT in limits:
        raise ValueError(
            f"joint {DEFAULT}: must have another name; in a file of limits this name stands for all joints"
        )
    return limits


# (limit, the one that hides it): a finite limit is refused where it is not below the other.
# - following, max_step: no command is further than max_step from the measured position, so the alarm of a
#   larger following error never comes.
# - following, position: commands and positions are in the same range, so it never comes either.
# - max_step, position: every command in the range is that near, so the first one may be a jump through it.
# The other pairs hide nothing that keeps a robot safe:
# - velocity, acceleration, position, max_step: where one is stricter, motion keeps them all. In a control
#   period the slower ones may never act, but commands can be much closer to each other than a period.
# - effort: it is the only limit of a commanded effort.
# - workspace: where no position of the arm is outside of the box, `Workspace` refuses it.
_HIDDEN_BY = (("following", "max_step"), ("following", "position"), ("max_step", "position"))


def _check_not_hidden(where: str, limits: Mapping[str, float]) -> None:
    """Check that no limit of an entry keeps another one from ever acting."""
    span = limits.get("position_high", math.inf) - limits.get("position_low", -math.inf)
    # A joint that is locked is measured beside its only position all the same.
    bounds = {"max_step": limits.get("max_step", math.inf), "position": span if span > 0.0 else math.inf}
    for name, other in _HIDDEN_BY:
        if bounds[other] <= limits.get(name, 0.0) < math.inf:
            named = other if other == "max_step" else "the range of position"
            raise ValueError(
                f"{where}.{name}: {limits[name]:g}, must be below {named}, {bounds[other]:g}, which would "
                "keep it from ever acting, or be .inf for none"
            )


def _entry(where: str, values: dict[object, object]) -> dict[str, float]:
    """Return the limits of one entry by field."""
    limits: dict[str, float] = {}
    for key, value in values.items():
        if key not in ENTRY_LIMITS:
            raise ValueError(f"{where}.{key}: unknown, must be one of {', '.join(ENTRY_LIMITS)}")
        if key == "position":
            low, high = checked(Ends, value, f"{where}.{key}", strict=True)
            check_order(f"{where}.{key}", low, high)
            limits["position_low"], limits["position_high"] = low, high
        else:
            limits[key] = checked(ENTRY_LIMITS[key].number, value, f"{where}.{key}", strict=True)
    _check_not_hidden(where, limits)
    return limits

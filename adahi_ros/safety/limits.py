# SPDX-License-Identifier: Apache-2.0
"""How far, how fast and how hard each commanded entry may go."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from adahi_ros.contract.contract import GOALS
from adahi_ros.core.files import read_bytes
from adahi_ros.core.schema import Listed, Schema, checked, shown
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.safety.checks import (
    CONTINUOUS,
    ENDLESS,
    LARGEST,
    Effort,
    Position,
    Rate,
    check_order,
)
from adahi_ros.safety.checks import checked as checked_limit

DEFAULT = "default"
WORKSPACE = "workspace"  # of the whole robot; safety/workspace.py reads it
MARGIN = 0.1
FOLLOWING_STEPS = 0.8  # default following error, in units of max_step; from 1 on max_step would hide it
NEEDED = {  # by what is commanded: what limits it
    "positions": ("position", "velocity"),
    "velocities": ("velocity",),
    "accelerations": ("acceleration",),
    "effort": ("effort",),
    GOALS: ("position",),
}
NEEDED_IF_MEASURED = {"positions": "max_step"}  # by what is commanded, where the joint's position is measured
URDF_SUFFIXES = (".urdf", ".xml")
YAML_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class _Entry(Schema):
    """The limits of one name, as our own file has them; NaN for one that it has not."""

    position: Annotated[Listed[Position], Field(min_length=2, max_length=2)] = ()
    velocity: Rate = math.nan
    acceleration: Rate = math.nan
    max_step: Rate = math.nan
    effort: Effort = math.nan
    following: Rate = math.nan

    def __post_init__(self) -> None:
        if self.position:
            check_order("position", *self.position)

    def given(self) -> dict[str, float]:
        """Return the limits by field."""
        values = {**vars(self), **dict(zip(ENDLESS, self.position, strict=False))}
        del values["position"]
        return {name: value for name, value in values.items() if not math.isnan(value)}


@dataclass(frozen=True)
class _File(Schema):
    limits: Annotated[dict[str, _Entry], Field(min_length=1)]
    workspace: Any = None  # safety/workspace.py reads it


@dataclass(frozen=True)
class _MoveItFile(Schema):
    joint_limits: Annotated[dict[str, Any], Field(min_length=1)]
    default_velocity_scaling_factor: Any = None  # a planner's habits
    default_acceleration_scaling_factor: Any = None


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of the A entries of an action, infinite where there is none.

    Units are the entry's own: rad or m, and per second where it says so. Symmetric but for the position.

    Attributes:
        names: the A commanded entries.
        position_low: (A,) float64, smallest position.
        position_high: (A,) float64, largest position.
        velocity: (A,) float64, largest speed, per s.
        acceleration: (A,) float64, largest change of velocity, per s^2.
        max_step: (A,) float64, largest distance of a commanded position from the measured one.
        effort: (A,) float64, largest force or torque, N or N m.
        following: (A,) float64, largest following error: distance between commanded and measured position
            that may last. A larger one means that the arm does not follow.
        continuous: (A,) bool, joints that turn without end, as a URDF names them; none where it is left out.

    Raises:
        ValueError: names entry, field, value and what was allowed.
    """

    names: tuple[str, ...]
    position_low: np.ndarray
    position_high: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    max_step: np.ndarray
    effort: np.ndarray
    following: np.ndarray
    continuous: np.ndarray = field(default_factory=lambda: np.zeros(1, bool))

    def __post_init__(self) -> None:
        continuous = np.zeros(len(self.names), bool) | self.continuous
        continuous.flags.writeable = False
        object.__setattr__(self, "continuous", continuous)
        for each in fields(self)[1:-1]:
            values = np.array(getattr(self, each.name), dtype=np.float64)
            if values.shape != (len(self.names),):
                raise ValueError(f"{each.name}: shape {values.shape}, expected ({len(self.names)},)")
            quantity = each.name.removesuffix("_low").removesuffix("_high")
            for name, value in zip(self.names, values.tolist(), strict=True):
                checked_limit(f"{name}.{each.name}", quantity, value)
            values.flags.writeable = False
            object.__setattr__(self, each.name, values)
        for name, low, high in zip(self.names, self.position_low, self.position_high, strict=True):
            check_order(f"{name}.position", low, high)

    @cached_property
    def far(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions, the lowest and the highest (A,), beyond which a robot is far outside of its limits.

        That is by more than `MARGIN` of their range, or beyond any that a robot has, whatever its limits.
        """
        low, high = self.position_low, self.position_high
        with np.errstate(invalid="ignore", over="ignore"):
            margin = MARGIN * (high - low)
            known = np.isfinite(margin) & (margin > 0.0)  # else nobody knows what is far
            least = np.where(known, np.maximum(low - margin, -LARGEST), -LARGEST)
            most = np.where(known, np.minimum(high + margin, LARGEST), LARGEST)
        return least, most

    def needing_position(self, commanded: Sequence[str]) -> dict[str, str]:
        """Return the entries with a limit that holds only where their position is measured, and which it is.

        Args:
            commanded: (A,), what each entry is, a key of `NEEDED`.
        """
        columns = {
            "positions": {"max_step": self.max_step},
            "velocities": {"position": np.minimum(-self.position_low, self.position_high)},
        }
        return {
            name: limit
            for place, (name, field) in enumerate(zip(self.names, commanded, strict=True))
            for limit, values in columns.get(field, {}).items()
            if math.isfinite(values[place])
        }

    @classmethod
    def of(cls, names: Sequence[str], limits: Mapping[str, Mapping[str, float]]) -> Limits:
        """Make limits from those of each name by field; what is not given is unlimited.

        The exception is `following`: its default is `FOLLOWING_STEPS` times `max_step`.
        """

        def value(name: str, field: str) -> float:
            given = limits.get(name, {})
            if field == "following":
                return given.get(field, FOLLOWING_STEPS * given.get("max_step", math.inf))
            return given.get(field, -math.inf if field == "position_low" else math.inf)

        def column(field: str) -> np.ndarray:
            return np.array([value(name, field) for name in names])

        continuous = np.array([bool(limits.get(name, {}).get(CONTINUOUS)) for name in names])
        columns: list[np.ndarray] = [column(each.name) for each in fields(cls)[1:-1]]
        return cls(tuple(names), *columns, continuous)  # type: ignore[call-arg]


def load_limits(
    path: Path, names: Sequence[str], commanded: Sequence[str] = (), measured: Collection[str] = ()
) -> Limits:
    """Read the limits of some entries.

    Three kinds of file. Our YAML, every key of an entry optional; `default` serves the names that have
    no entry of their own:

        limits:
          JOINT: {position: [LOW, HIGH], velocity: V, acceleration: A, max_step: S, effort: E, following: F}
          default: {velocity: V}

    The same file may have a `workspace` (`safety/workspace.py`).

    MoveIt's joint_limits.yaml. Or a URDF, which knows no accelerations.

    Args:
        path: NAME.yaml, NAME.yml, NAME.urdf or NAME.xml.
        names: the A commanded entries.
        commanded: (A,), what each entry is, a key of `NEEDED`: it must say what limits that, `.inf` where
            nothing does, and be limited by some of it; empty for entries that need not be limited.
        measured: entries with a measured position. These also need what `NEEDED_IF_MEASURED` names.

    Raises:
        FileNotFoundError: no such file.
        ValueError: names file, field, value and what was allowed; or the names that the file has not.
    """
    path = Path(path)
    try:
        limits = _named(names, _read(path))
        if commanded:
            field_of = dict(zip(names, commanded, strict=True))
            _check_limited(limits, field_of)
            _check_measured(limits, {name: field_of[name] for name in names if name in measured})
        return Limits.of(names, limits)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _named(names: Sequence[str], limits: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    missing = [name for name in names if name not in limits]
    if missing and DEFAULT not in limits:
        raise ValueError(
            f"no limits of {', '.join(missing)}, only of {', '.join(map(str, limits)) or 'none'}"
        )
    return {name: limits.get(name, limits.get(DEFAULT, {})) for name in names}


def _check_limited(limits: dict[str, dict[str, float]], field_of: Mapping[str, str]) -> None:
    """Check that something limits each entry, and that no limit was merely forgotten."""
    for name, entry in limits.items():
        limited, commanded = False, field_of[name]
        for quantity in NEEDED[commanded]:
            values = [value for field, value in entry.items() if field.startswith(quantity)]
            if not values:
                raise ValueError(f"{name}.{quantity}: missing, must be there for commanded {commanded}")
            limited |= all(map(math.isfinite, values))
        if not limited:
            some = " or ".join(NEEDED[commanded])
            raise ValueError(f"{name}: nothing limits commanded {commanded}, {some} must be finite")


def _check_measured(limits: dict[str, dict[str, float]], field_of: Mapping[str, str]) -> None:
    """Check that no limit relative to the measured position was forgotten."""
    for name, commanded in field_of.items():
        quantity = NEEDED_IF_MEASURED.get(commanded)
        if quantity is not None and quantity not in limits[name]:
            raise ValueError(
                f"{name}.{quantity}: missing, must be there for commanded {commanded} that are measured: "
                f"the largest distance of a command from the measured position, or .inf for none; only "
                f"{' and '.join(YAML_SUFFIXES)} with `limits:` can give it"
            )


def _read(path: Path) -> dict[str, dict[str, float]]:
    """Return the limits of everything that a file has, by name and field."""
    if path.suffix in URDF_SUFFIXES:
        from adahi_ros.safety.urdf import urdf_limits

        return urdf_limits(read_bytes(path))
    if path.suffix not in YAML_SUFFIXES:
        allowed = ", ".join((*YAML_SUFFIXES, *URDF_SUFFIXES))
        raise ValueError(f"suffix: {shown(path.suffix)}, must be one of {allowed} (of a xacro, make a URDF)")
    values = read_yaml(path)
    if isinstance(values, dict) and "joint_limits" in values:
        from adahi_ros.safety.moveit import moveit_limits

        joints = checked(_MoveItFile, values).joint_limits
        return {name: moveit_limits(f"joint_limits.{name}", entry) for name, entry in joints.items()}
    return {name: entry.given() for name, entry in checked(_File, values).limits.items()}

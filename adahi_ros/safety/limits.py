# SPDX-License-Identifier: Apache-2.0
"""Limits of position, speed and force of each commanded entry."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np

from adahi_ros.safety.entry_limits import CONTINUOUS, ENTRY_LIMITS, LARGEST, check_order, checked

MARGIN = 0.1
FOLLOWING_STEPS = 0.8  # default following error, in units of max_step; from 1 on max_step would hide it


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of the A entries of an action, infinite without a limit.

    Units are the entry's own: rad or m, with the given time derivative. All but the position are symmetric.

    Attributes:
        names: the A commanded entries.
        position_low: (A,) float64, smallest position.
        position_high: (A,) float64, largest position.
        velocity: (A,) float64, largest speed, per s.
        acceleration: (A,) float64, largest change of velocity, per s^2.
        max_step: (A,) float64, largest distance of a commanded position from the measured one.
        effort: (A,) float64, largest force or torque, N or N m.
        following: (A,) float64, largest following error: lasting distance between commanded and measured
            position. A larger one means that the arm does not follow.
        continuous: (A,) bool, joints that turn without end, as in a URDF; by default none.

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
            for name, value in zip(self.names, values.tolist(), strict=True):
                checked(f"{name}.{each.name}", _limit_of(each.name), value)
            values.flags.writeable = False
            object.__setattr__(self, each.name, values)
        for name, low, high in zip(self.names, self.position_low, self.position_high, strict=True):
            check_order(f"{name}.position", low, high)

    def place(self, joint: int, measured: np.ndarray) -> str:
        """Return where a joint is, of measured positions (A,), and what its limits allow, for people."""
        allowed = f"{self.position_low[joint]:.4g} to {self.position_high[joint]:.4g}"
        return f"{self.names[joint]} is {measured[joint]:.4g}, its limits are {allowed}"

    @cached_property
    def far(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest positions (A,), beyond which a robot is far outside of its limits.

        That is by more than `MARGIN` of their range, or beyond any robot's positions.
        """
        low, high = self.position_low, self.position_high
        with np.errstate(invalid="ignore", over="ignore"):
            margin = MARGIN * (high - low)
            known = np.isfinite(margin) & (margin > 0.0)  # otherwise unknown
            least = np.where(known, np.maximum(low - margin, -LARGEST), -LARGEST)
            most = np.where(known, np.minimum(high + margin, LARGEST), LARGEST)
        return least, most

    def needing_position(self, commanded: Sequence[str]) -> dict[str, str]:
        """Return the entries with a limit that applies only where their position is measured, and this limit.

        Args:
            commanded: (A,), the quantity of each entry.
        """
        return {
            name: _limit_of(column.name)
            for place, (name, field) in enumerate(zip(self.names, commanded, strict=True))
            for column in reversed(fields(self)[1:-1])  # the first one wins: following may be by default
            if field in ENTRY_LIMITS[_limit_of(column.name)].relative
            and math.isfinite(getattr(self, column.name)[place])
        }

    @classmethod
    def from_fields(cls, names: Sequence[str], limits: Mapping[str, Mapping[str, float]]) -> Limits:
        """Make limits from values by name and field; missing ones are unlimited.

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


def _limit_of(column: str) -> str:
    """Return the key of `ENTRY_LIMITS` for a column of `Limits`."""
    return column.removesuffix("_low").removesuffix("_high")

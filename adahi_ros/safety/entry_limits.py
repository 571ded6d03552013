# SPDX-License-Identifier: Apache-2.0
"""The limits of each commanded entry: their ranges, and the commands that need them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import WrapValidator

from adahi_ros.contract.contract import GOALS
from adahi_ros.core import schema
from adahi_ros.core.schema import must

LARGEST = 1e9  # of any magnitude in a limit or an action: more than any robot's units need
SMALLEST = 1e-9  # of a rate; 0 would be a joint that never moves, and is often an exporter's error


def _limit(least: float, lowest: float = math.inf) -> WrapValidator:
    words = f"be a number from {least:g} to {LARGEST:g}, or .inf"
    return must(words, lambda value: least <= value <= LARGEST or value in (lowest, math.inf))


Position = Annotated[float, _limit(-LARGEST, -math.inf)]
Rate = Annotated[float, _limit(SMALLEST)]
Effort = Annotated[float, _limit(0.0)]


@dataclass(frozen=True)
class EntryLimit:
    """A limit of one commanded entry: a number, or for a position the smallest and the largest one.

    Attributes:
        meaning: what it limits, for docs/reference/limits.md.
        number: type of its value.
        needed_by: commands that require it.
        needed_if_measured: likewise, where the entry's position is measured.
        relative: commands for which it applies only where the entry's position is measured.
    """

    meaning: str
    number: Any = Rate
    needed_by: tuple[str, ...] = ()
    needed_if_measured: tuple[str, ...] = ()
    relative: tuple[str, ...] = ()


ENTRY_LIMITS = {
    "position": EntryLimit(
        "Smallest and largest position",
        Position,
        needed_by=("positions", GOALS),
        relative=("velocities",),
    ),
    "velocity": EntryLimit("Largest speed, per s", needed_by=("positions", "velocities")),
    "acceleration": EntryLimit("Largest change of velocity, per s^2", needed_by=("accelerations",)),
    "max_step": EntryLimit(
        "Largest distance of a commanded position from the measured one",
        needed_if_measured=("positions",),
        relative=("positions",),
    ),
    "effort": EntryLimit("Largest force or torque, N or N m", Effort, needed_by=("effort",)),
    "following": EntryLimit(
        "Largest lasting distance between commanded and measured position, below max_step; by default "
        "0.8 max_step",
        relative=("positions",),
    ),
}
"""Keys of each entry in a file of limits. Governors enforce them in the order of `STAGES` (governors.py)."""

ENDLESS = {"position_low": -math.inf, "position_high": math.inf}  # of a joint that turns without end
CONTINUOUS = "continuous"  # the key of a joint without position limits; it may be reported in (-pi, pi]


def checked(where: str, name: str, value: object) -> float:
    """Return a limit; infinite is no limit.

    Args:
        where: names it in the error.
        name: a key of `ENTRY_LIMITS`.
        value: the value in the file.

    Raises:
        ValueError: it is no number, or out of range.
    """
    limit: float = schema.checked(ENTRY_LIMITS[name].number, value, where)
    return limit


def check_order(where: str, low: float, high: float) -> None:
    """Check that two position limits are ordered.

    Raises:
        ValueError: they are not.
    """
    if low > high or low == math.inf or high == -math.inf:
        raise ValueError(f"{where}: [{low:g}, {high:g}], the low limit must not be above the high one")

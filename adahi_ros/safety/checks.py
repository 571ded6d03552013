# SPDX-License-Identifier: Apache-2.0
"""The numbers that a limit may be, and the keys that its file may have."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Set
from typing import Any

LARGEST = 1e9  # of any magnitude in a limit or an action: no robot's unit makes more of anything
SMALLEST = 1e-9  # of a rate; 0 would be a joint that never moves, and is what careless exporters write

SHOWN = reprlib.Repr()
SHOWN.maxlevel = 2  # a few lines of YAML make a list of billions

LEAST = {
    "position": -LARGEST,
    "velocity": SMALLEST,
    "acceleration": SMALLEST,
    "max_step": SMALLEST,
    "effort": 0.0,
    "following": SMALLEST,
}

ENDLESS = {"position_low": -math.inf, "position_high": math.inf}  # of a joint that turns on and on
CONTINUOUS = "continuous"  # the key of such a joint: its position may be reported in (-pi, pi]


def checked(where: str, quantity: str, value: Any) -> float:
    """Return a limit; infinite is no limit.

    Args:
        where: names it in the error.
        quantity: one of `LEAST`.
        value: as the file has it.

    Raises:
        ValueError: it is no number, or none that the quantity may be.
    """
    least = LEAST[quantity]
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
    infinite = number and (value == math.inf or (value == -math.inf and quantity == "position"))
    if not number or not (infinite or least <= value <= LARGEST):
        raise ValueError(f"{where}: {shown(value)}, must be a number from {least:g} to {LARGEST:g}, or .inf")
    return float(value)


def check_order(where: str, low: float, high: float) -> None:
    """Check that there is something between two position limits.

    Raises:
        ValueError: there is not.
    """
    if low > high or low == math.inf or high == -math.inf:
        raise ValueError(f"{where}: [{low:g}, {high:g}], the low limit must not be above the high one")


def check_keys(where: str, values: Any, known: Set[str]) -> Mapping[str, Any]:
    """Return a mapping that has only known keys.

    Raises:
        ValueError: it is no mapping, or has others; names the first.
    """
    listed = ", ".join(sorted(known))
    if not isinstance(values, Mapping):
        raise ValueError(f"{where}: {shown(values)}, must be a mapping of {listed}")
    for name in sorted(values.keys() - known, key=str):
        raise ValueError(f"{where}.{name}: unknown, must be one of {listed}")
    return values


def shown(value: Any) -> str:
    """Return a value for a message, however large it is."""
    return SHOWN.repr(value)

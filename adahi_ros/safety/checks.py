# SPDX-License-Identifier: Apache-2.0
"""The numbers that a limit may be, and the keys that its file may have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import Annotated, Any

from pydantic import WrapValidator

from adahi_ros.core import schema
from adahi_ros.core.schema import must, shown

LARGEST = 1e9  # of any magnitude in a limit or an action: no robot's unit makes more of anything
SMALLEST = 1e-9  # of a rate; 0 would be a joint that never moves, and is what careless exporters write


def _limit(least: float, lowest: float = math.inf) -> WrapValidator:
    words = f"be a number from {least:g} to {LARGEST:g}, or .inf"
    return must(words, lambda value: least <= value <= LARGEST or value in (lowest, math.inf))


Position = Annotated[float, _limit(-LARGEST, -math.inf)]
Rate = Annotated[float, _limit(SMALLEST)]
Effort = Annotated[float, _limit(0.0)]
QUANTITIES = {"position": Position, "effort": Effort}  # others are rates

ENDLESS = {"position_low": -math.inf, "position_high": math.inf}  # of a joint that turns on and on
CONTINUOUS = "continuous"  # the key of such a joint: its position may be reported in (-pi, pi]


def checked(where: str, quantity: str, value: Any) -> float:
    """Return a limit; infinite is no limit.

    Args:
        where: names it in the error.
        quantity: that it limits.
        value: as the file has it.

    Raises:
        ValueError: it is no number, or none that the quantity may be.
    """
    limit: float = schema.checked(QUANTITIES.get(quantity, Rate), value, where)
    return limit


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

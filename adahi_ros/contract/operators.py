# SPDX-License-Identifier: Apache-2.0
"""Operators on numbers between a message and the policy, and their inverses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adahi_ros.contract.fields import LARGEST

LARGEST_SCALE = 1e9


@dataclass(frozen=True)
class Operator:
    """One entry of `apply`: from a message's unit to the policy's, and back.

    Attributes:
        forward: from the message's unit to the policy's.
        inverse: from the policy's unit to the message's.
        size: of how many numbers; 0 for any.
    """

    forward: Callable[[np.ndarray], np.ndarray]
    inverse: Callable[[np.ndarray], np.ndarray]
    size: int = 0


Make = Callable[[object], Operator]
"""From an operator's argument, None without one, to the operator."""


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise ValueError(f"{name}: {value!r}, must be a finite number")
    return float(value)


def _factor(value: object) -> float:
    factor = _number("scale", value)
    if not 1.0 / LARGEST_SCALE <= abs(factor) <= LARGEST_SCALE:  # its inverse must be finite, too
        raise ValueError(
            f"scale: {value!r}, must be from {1.0 / LARGEST_SCALE:g} to {LARGEST_SCALE:g}, or negative"
        )
    return factor


def _each(value: object, read: Callable[[object], float]) -> tuple[np.ndarray, int]:
    """Return one number for all, or one for each, and of how many numbers; 0 for any."""
    if isinstance(value, list) and value:
        return np.array([read(each) for each in value]), len(value)
    return np.array(read(value)), 0


def _scale(value: object) -> Operator:
    factors, size = _each(value, _factor)
    return Operator(lambda numbers: numbers * factors, lambda numbers: numbers / factors, size)


def _offset(value: object) -> Operator:
    added, size = _each(value, lambda each: _number("offset", each))
    return Operator(lambda numbers: numbers + added, lambda numbers: numbers - added, size)


def _clamp(value: object) -> Operator:
    if not isinstance(value, dict) or set(value) != {"min", "max"}:
        raise ValueError(f"clamp: {value!r}, must be {{min: A, max: B}}")
    low, high = _number("clamp.min", value["min"]), _number("clamp.max", value["max"])
    if low > high:
        raise ValueError(f"clamp: {value!r}, min must not be above max")
    return Operator(lambda numbers: numbers.clip(low, high), lambda numbers: numbers.clip(low, high))


def _unit(forward: Callable[[np.ndarray], np.ndarray], inverse: Callable[[np.ndarray], np.ndarray]) -> Make:
    def make(value: object) -> Operator:
        if value is not None:
            raise ValueError(f"{forward.__name__}: {value!r}, takes no argument")
        return Operator(forward, inverse)

    return make


OPERATORS: dict[str, Make] = {
    "rad2deg": _unit(np.rad2deg, np.deg2rad),
    "deg2rad": _unit(np.deg2rad, np.rad2deg),
    "scale": _scale,
    "offset": _offset,
    "clamp": _clamp,
}


def operator(entry: object) -> Operator:
    """Make an operator of an entry of `apply`: a name, or a mapping from one name to its argument.

    Raises:
        ValueError: names the operator and what was allowed.
    """
    if isinstance(entry, str):
        entry = {entry: None}
    if not isinstance(entry, dict) or len(entry) != 1 or next(iter(entry)) not in OPERATORS:
        raise ValueError(f"must be one of {', '.join(OPERATORS)}")
    ((name, argument),) = entry.items()
    return OPERATORS[name](argument)

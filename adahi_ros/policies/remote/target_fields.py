# SPDX-License-Identifier: Apache-2.0
"""Fields of a YAML file, checked: what one says, or an error with its name, its value and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

LARGEST = float(np.finfo(np.float32).max)
MOST_ENTRIES = 4096  # of any list


def mapping(where: str, value: Any) -> dict[str, Any]:
    """Return a mapping from names.

    Raises:
        ValueError: it is another thing.
    """
    if not isinstance(value, dict) or not all(isinstance(name, str) and name for name in value):
        raise ValueError(f"{where}: {value!r}, must be a mapping from names")
    return value


def known_only(where: str, values: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse fields that nobody reads.

    Raises:
        ValueError: there is one.
    """
    for name in values:
        if name not in known:
            field = f"{where}.{name}" if where else name
            raise ValueError(f"{field}: unknown field, must be one of {', '.join(known)}")


def text(where: str, value: Any) -> str:
    """Return a text.

    Raises:
        ValueError: it is empty, or another thing.
    """
    if not isinstance(value, str) or not value:
        raise ValueError(f"{where}: {value!r}, must be a text")
    return value


def flag(where: str, value: Any) -> bool:
    """Return a truth value.

    Raises:
        ValueError: it is another thing.
    """
    if not isinstance(value, bool):
        raise ValueError(f"{where}: {value!r}, must be true or false")
    return value


def one_of(where: str, value: Any, allowed: Sequence[str]) -> str:
    """Return one of some texts.

    Raises:
        ValueError: it is none of them.
    """
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{where}: {value!r}, must be one of {', '.join(allowed)}")
    return value


def whole(where: str, value: Any, least: int, most: int) -> int:
    """Return an integer.

    Raises:
        ValueError: it is another thing, or not from `least` to `most`.
    """
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{where}: {value!r}, must be an integer from {least} to {most}")
    return value


def positive(where: str, value: Any, most: float) -> float:
    """Return a number.

    Raises:
        ValueError: it is another thing, or not above 0 and at most `most`.
    """
    if not _is_number(value) or not 0 < value <= most:
        raise ValueError(f"{where}: {value!r}, must be above 0 and at most {most:g}")
    return float(value)


def names(where: str, value: Any) -> tuple[str, ...]:
    """Return names, each another one.

    Raises:
        ValueError: it is another thing, or empty, or one is there twice.
    """
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise ValueError(f"{where}: {value!r}, must be a list of names")
    if not 1 <= len(value) <= MOST_ENTRIES or len(set(value)) != len(value):
        raise ValueError(f"{where}: {value!r}, must be from 1 to {MOST_ENTRIES} different names")
    return tuple(value)


def numbers(where: str, value: Any, count: int) -> np.ndarray:
    """Return so many numbers, (count,) float64.

    Raises:
        ValueError: it is another thing, or of another length, or one is beyond float32.
    """
    if not isinstance(value, list) or len(value) != count:
        raise ValueError(f"{where}: {value!r}, must be a list of {count} numbers")
    for index, each in enumerate(value):
        if not _is_number(each) or not abs(each) <= LARGEST:
            raise ValueError(f"{where}[{index}]: {each!r}, must be a number from {-LARGEST:g} to {LARGEST:g}")
    return np.array(value, dtype=np.float64)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)

# SPDX-License-Identifier: Apache-2.0
"""Checks of what a contract's YAML says; each raises ValueError with field, value and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from adahi_ros.contract.fields import LARGEST

NAME = "[A-Za-z_][A-Za-z0-9_]*"
TOPIC = re.compile(f"/?{NAME}(/{NAME})*")
TYPE = re.compile(f"{NAME}/msg/{NAME}")
LONGEST_S = 1e6  # of any time, and the fastest rate


def mapping(where: str, values: Any) -> dict[str, Any]:
    """Return a copy of a mapping; an error names where it is not one."""
    if not isinstance(values, Mapping):
        raise ValueError(f"{where}: {values!r}, must be a mapping")
    return dict(values)


def check_keys(
    where: str, values: Mapping[str, Any], known: tuple[str, ...], required: tuple[str, ...] = ()
) -> None:
    """Check that a mapping has only known keys, and all the required ones."""
    for name in values:
        if name not in known:
            raise ValueError(f"{where}.{name}: unknown, must be one of {', '.join(known)}")
    for name in required:
        if name not in values:
            raise ValueError(f"{where}.{name}: missing")


def word(where: str, value: Any) -> str:
    """Return a string without whitespace."""
    if not isinstance(value, str) or not value.strip() or any(character.isspace() for character in value):
        raise ValueError(f"{where}: {value!r}, must be a word")
    return value


def one_of(where: str, value: Any, allowed: tuple[str, ...]) -> None:
    """Check that a value is one of those allowed."""
    if value not in allowed:
        raise ValueError(f"{where}: {value!r}, must be one of {', '.join(allowed)}")


def is_number(value: Any) -> bool:
    """Return whether a value is a number that float32 can represent."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def positive(where: str, value: Any) -> float:
    """Return a positive number of bearable size."""
    if not is_number(value) or not 1.0 / LONGEST_S <= value <= LONGEST_S:
        raise ValueError(f"{where}: {value!r}, must be a number from {1.0 / LONGEST_S:g} to {LONGEST_S:g}")
    return float(value)

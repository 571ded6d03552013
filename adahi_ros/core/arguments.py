# SPDX-License-Identifier: Apache-2.0
"""Arguments of components: fields of a dataclass, from which ROS parameters, YAML keys and docs are made."""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

from adahi_ros.core.texts import abridged

V = TypeVar("V")
LARGEST_INTEGER = 2**63 - 1
SHOWN = 100  # characters of a wrong value


@dataclass(frozen=True)
class Argument:
    """One argument of a component, or one parameter of a node.

    Attributes:
        name: with its unit, as `deadline_s`.
        default: its type is the argument's type.
        description: one sentence.
        low: smallest number allowed; None for no bound, and for what is no number.
        high: largest number allowed.
        choices: the strings allowed; empty for any except the empty one.
        live: a node accepts it while it is configured; it takes effect at the next control step.
        optional: a string may be empty.
        longest: characters that a string may have; None for no bound.
    """

    name: str
    default: bool | int | float | str | list[str]
    description: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    live: bool = False
    optional: bool = False
    longest: int | None = None

    @property
    def allowed(self) -> str:
        """Which values are allowed, for people."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.low is not None and self.high == LARGEST_INTEGER:
            return f"at least {self.low:g}"
        if self.low is not None and self.high is not None:
            return f"from {self.low:g} to {self.high:g}"
        if self.longest is not None:
            return f"a string of {int(not self.optional)} to {self.longest} characters"
        kinds = {
            bool: "true or false",
            int: "an integer",
            float: "a finite number",
            str: "a string" if self.optional else "a string, not empty",
        }
        return kinds.get(type(self.default), "strings, at least one (which may be ''), none twice")

    def fault(self, value: Any) -> str | None:
        """Say what is wrong with a value of the right type that is within the range, if anything is."""
        if self.longest is not None and len(value) > self.longest:
            right = False
        elif isinstance(self.default, str):
            right = value in self.choices if self.choices else self.optional or bool(value)
        elif isinstance(self.default, list):
            right = len(value) > 0 and len(set(value)) == len(value)
        elif isinstance(self.default, float):
            right = math.isfinite(value)
        else:
            right = True
        return None if right else self.refusal(value)

    def refusal(self, value: Any) -> str:
        """Say that a value, whatever its type, is not allowed, and what is."""
        return f"{self.name}: {abridged(repr(value), SHOWN)}, must be {self.allowed}"

    def checked(self, value: Any, within: str = "") -> Any:
        """Return a value of any type as this argument's type.

        Args:
            value: to check.
            within: what the argument's name begins with in errors.

        Raises:
            ValueError: it is not allowed; names the argument, the value and what is allowed.
        """
        if isinstance(self.default, float) and type(value) is int:
            value = float(value)
        right = type(value) is type(self.default)
        if right and self.low is not None and self.high is not None:
            right = self.low <= value <= self.high
        if not right or self.fault(value) is not None:
            raise ValueError(f"{within}{self.refusal(value)}")
        return value


def argument(
    default: V,
    description: str,
    low: float | None = None,
    high: float | None = None,
    *,
    choices: tuple[str, ...] = (),
    live: bool = False,
    optional: bool = False,
    longest: int | None = None,
) -> V:
    """Declare a field of a dataclass as an argument; the parameters are those of `Argument`.

    The default of names is a tuple of them, which may be empty.
    """
    described = {
        "description": description,
        "low": low,
        "high": high,
        "choices": choices,
        "live": live,
        "optional": optional,
        "longest": longest,
    }
    return field(default=default, metadata=described)


def arguments_of(component: type) -> dict[str, Argument]:
    """Return the arguments of a component by name, in the order of its fields; of one without any none."""
    declared = fields(component) if hasattr(component, "__dataclass_fields__") else ()
    return {
        each.name: Argument(each.name, each.default, **each.metadata)
        for each in declared
        if each.metadata and each.default is not MISSING
    }

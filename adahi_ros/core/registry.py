# SPDX-License-Identifier: Apache-2.0
"""What there is of a kind, by name: what is shipped, and what other installed packages add by entry points.

A package adds one by a line of its `setup.py` or `pyproject.toml`, as to pytest (docs/how_to/extend.md). Its
name is read from what is installed. Code is imported when its name is looked up, not before.

Arguments of a component are fields of its dataclass. ROS parameters, YAML keys and docs are made from them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from adahi_ros.core.texts import shortened

T = TypeVar("T")
V = TypeVar("V")
LARGEST_INTEGER = 2**63 - 1
LARGEST = int(sys.float_info.max)
SHOWN = 100  # characters of a wrong value


class RegistryError(ValueError):
    """What a package adds cannot be used; the message says what, of which package, and why."""


def at_place(place: str) -> Any:
    """Import what is at "module:attribute"."""
    module, _, attribute = place.partition(":")
    return vars(import_module(module))[attribute]


class Registry(Mapping[str, T]):
    """A mapping from names; a look-up imports what has the name.

    Args:
        group: of the entry points, such as adahi_ros.gates.
        shipped: what comes with this package, itself or as "module:attribute"; a name in it cannot be taken
            by another.
        base: that classes of other packages must derive from.
    """

    def __init__(self, group: str, shipped: dict[str, T | str], base: type = object) -> None:
        self.group = group
        self.base = base
        self.shipped = shipped
        self._loaded: dict[str, T] = {}

    @cached_property
    def _added(self) -> dict[str, list[EntryPoint]]:
        found: dict[str, list[EntryPoint]] = {}
        for entry in entry_points(group=self.group):
            found.setdefault(entry.name, []).append(entry)
        return found

    def __getitem__(self, name: str) -> T:
        """Return what has this name.

        Raises:
            KeyError: nothing has.
            RegistryError: more than one has, it cannot be imported, or it is of another base.
        """
        entries = self._added.get(name, [])
        owners = [_package(entry) for entry in entries] + ["adahi_ros"] * (name in self.shipped)
        if len(owners) > 1:
            raise RegistryError(
                f"{self.group}: {name!r} is in {', '.join(sorted(owners))}; must be in one package"
            )
        if not entries:
            shipped = self.shipped[name]
            found: T = at_place(shipped) if isinstance(shipped, str) else shipped
            return found
        if name not in self._loaded:
            self._loaded[name] = self._load(entries[0])
        return self._loaded[name]

    def _load(self, entry: EntryPoint) -> T:
        try:
            loaded: T = entry.load()
        except Exception as error:  # a stranger's module may raise anything as it is imported
            reason = f"{type(error).__name__}: {error}"
            what = f"{self.group}: {entry.name!r} of {_package(entry)}"
            raise RegistryError(f"{what}: {entry.value} cannot be imported ({reason})") from error
        if isinstance(loaded, type) and not issubclass(loaded, self.base):
            base = f"{self.base.__module__}.{self.base.__name__}"
            raise RegistryError(
                f"{self.group}: {entry.name!r} of {_package(entry)}: {entry.value}, must derive from {base}"
            )
        return loaded

    def __contains__(self, name: object) -> bool:
        """Whether there is one of this name; imports nothing."""
        return name in self.shipped or name in self._added

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, those that are shipped first; imports nothing."""
        yield from self.shipped
        yield from sorted(self._added.keys() - self.shipped.keys())

    def __len__(self) -> int:
        return len(self.shipped.keys() | self._added.keys())


def _package(entry: EntryPoint) -> str:
    """Return the name of the package that an entry point is of; Python 3.10 may not know it."""
    return entry.dist.name if entry.dist is not None else entry.module


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
        names: a registry; the string names a component of it, whose arguments are given beside this one.
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
    names: Mapping[str, Any] | None = None

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

    def refusal(self, value: object) -> str:
        """Say that a value, whatever its type, is not allowed, and what is."""
        return f"{self.name}: {shortened(repr(value), SHOWN)}, must be {self.allowed}"

    def checked(self, value: Any, within: str = "") -> Any:
        """Return a value of any type as this argument's type.

        Args:
            value: to check.
            within: what the argument's name begins with in errors.

        Raises:
            ValueError: it is not allowed; names the argument, the value and what is allowed.
        """
        if isinstance(self.default, float) and type(value) is int and abs(value) <= LARGEST:
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
    names: Mapping[str, Any] | None = None,
) -> V:
    """Declare a field of a dataclass as an argument; the parameters are those of `Argument`.

    The default of strings is a tuple of them, which may be empty. `names` has its names as choices, unless
    others are given.
    """
    if names is not None and not choices:
        choices = ("",) * optional + tuple(names)
    described = {
        "description": description,
        "low": low,
        "high": high,
        "choices": choices,
        "live": live,
        "optional": optional,
        "longest": longest,
        "names": names,
    }
    return field(default=default, metadata=described)


def arguments_of(component: Any) -> dict[str, Argument]:
    """Return the arguments of a component by name, in the order of its fields; of one without any none."""
    declared = fields(component) if hasattr(component, "__dataclass_fields__") else ()
    return {
        each.name: Argument(each.name, each.default, **each.metadata)
        for each in declared
        if each.metadata and each.default is not MISSING
    }


def arguments_beside(row: Argument, value_of: Callable[[str], Any]) -> Iterator[Argument]:
    """Iterate over the arguments of the component that an argument names, and of those that these name.

    Their names begin as that of the argument does, or, where that is in no group, with the component's own
    name. A component that cannot be imported has none: an error follows when it is made.

    Args:
        row: whose value is the name of a component.
        value_of: from the name of an argument to its value; of one from this iterator only after its turn.
    """
    name = value_of(row.name)
    within = row.name.rpartition(".")[0] or name
    try:
        known = arguments_of((row.names or {})[name])
    except Exception:  # noqa: BLE001  another package's module may raise anything; "" names nothing
        return
    for each in known.values():
        named = replace(each, name=f"{within}.{each.name}", live=row.live)
        yield named
        if named.names is not None and named.name != row.name:
            yield from arguments_beside(named, value_of)

# SPDX-License-Identifier: Apache-2.0
"""Registries of components by name: those shipped, and those of other packages, by entry points.

A package adds one by a line of its `setup.py` or `pyproject.toml`, as for pytest (docs/how_to/extend.md).
Names are read from package metadata. Code is imported only when its name is looked up.

Arguments of a component are fields of its dataclass. They define ROS parameters, YAML keys and docs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import signature
from typing import Any, TypeVar

from adahi_ros.core.gone_names import gone
from adahi_ros.core.texts import shortened

T = TypeVar("T")
V = TypeVar("V")
LARGEST_INTEGER = 2**63 - 1
LARGEST = int(sys.float_info.max)
SHOWN = 100  # characters of a wrong value


OF_A_PATH = "at most 255 bytes between slashes, and 4095 in all"  # most texts name a file


def _fits_a_path(text: str) -> bool:
    encoded = text.encode(errors="replace")
    return len(encoded) <= 4095 and max(map(len, encoded.split(b"/"))) <= 255


class RegistryError(ValueError):
    """A package's component cannot be used; the message has component, package and reason."""


def at_place(place: str) -> Any:
    """Import the object at "module:attribute"."""
    module, _, attribute = place.partition(":")
    return vars(import_module(module))[attribute]


class Registry(Mapping[str, T]):
    """A mapping from names to components; a look-up imports the component.

    Args:
        group: of the entry points, such as adahi_ros.gates.
        shipped: components of the group's own package, as objects or "module:attribute"; other packages
            cannot reuse their names.
        base: required base class of other packages' classes.
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
        """Return the component of this name.

        Raises:
            KeyError: there is none.
            RegistryError: there are several, it cannot be imported, or it has another base.
        """
        entries = self._added.get(name, [])
        owners = [_package(entry) for entry in entries] + [self.group.partition(".")[0]] * (
            name in self.shipped
        )
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

    def made(self, field: str, name: str, arguments: Mapping[str, Any], *given: object) -> Any:
        """Make the component of this name.

        Args:
            field: by which it is named, for errors.
            name: of the component.
            arguments: by name.
            given: what its role gives to each component, before the arguments.

        Raises:
            ValueError: there is none, or an argument is unknown or invalid; names it.
        """
        if name not in self:
            raise ValueError(self.refusal(field, name))
        make: Any = getattr(self[name], "made", self[name])  # for one that takes arguments of another
        try:
            signature(make).bind(*given, **arguments)
            return make(*given, **arguments)
        except TypeError as error:  # also for a text instead of a number
            allowed = ", ".join([*signature(make).parameters][len(given) :]) or "none"
            raise ValueError(f"{field} {name}: {error}; its arguments are: {allowed}") from error

    def _load(self, entry: EntryPoint) -> T:
        try:
            loaded: T = entry.load()
        except Exception as error:  # another package's module may raise anything on import
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
        """Whether there is a component of this name; imports nothing."""
        return name in self.shipped or name in self._added

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, shipped ones first; imports nothing."""
        yield from self.shipped
        yield from sorted(self._added.keys() - self.shipped.keys())

    def refusal(self, field: str, name: object) -> str:
        """Return the error for a field with an unknown name, with the names that are allowed."""
        return f"{field}: {name!r}{gone(name)}, must be one of {', '.join(sorted(self))}"

    def __len__(self) -> int:
        return len(self.shipped.keys() | self._added.keys())


def _package(entry: EntryPoint) -> str:
    """Return the package name of an entry point, which Python 3.10 may not know."""
    return entry.dist.name if entry.dist is not None else entry.module


@dataclass(frozen=True)
class Argument:
    """One argument of a component, or one parameter of a node.

    Attributes:
        name: with its unit, as `deadline_s`.
        default: its type is the argument's type.
        description: one sentence.
        low: smallest number allowed; None for no bound, and for other types.
        high: largest number allowed.
        choices: the strings allowed; empty for any non-empty string.
        live: a node accepts it while it is configured; it takes effect at the next control step.
        optional: a string may be empty.
        longest: characters that a string may have; None for no bound.
        names: a registry; the string names its component, with its arguments given beside this one.
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
        """Description of the allowed values."""
        if self.choices:
            return f"one of {', '.join(choice or repr(choice) for choice in self.choices)}"
        if self.low is not None and self.high == LARGEST_INTEGER:
            return f"at least {self.low:g}"
        if self.low is not None and self.high is not None:
            low, high = (
                int(each) if float(each).is_integer() else f"{each:g}" for each in (self.low, self.high)
            )
            return f"from {low} to {high}"
        if self.longest is not None:
            return f"a string of {int(not self.optional)} to {self.longest} characters"
        kinds = {
            bool: "true or false",
            int: "an integer",
            float: "a finite number",
            str: "a string" if self.optional else "a string, not empty",
        }
        return kinds.get(type(self.default), "a list of different strings, [''] for none")

    def fault(self, value: Any) -> str | None:
        """Return the fault of a value of the right type and range, if any."""
        texts = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        if self.longest is None and not all(map(_fits_a_path, texts)):
            return f"{self.name}: {shortened(repr(value), SHOWN)}, must have {OF_A_PATH}"
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
        """Return the error for a value that is not allowed, with what is allowed."""
        was = gone(value) if self.choices else ""
        return f"{self.name}: {shortened(repr(value), SHOWN)}{was}, must be {self.allowed}"

    def checked(self, value: Any, within: str = "") -> Any:
        """Convert a value of any type to this argument's type.

        Args:
            value: to check.
            within: prefix of the argument's name in errors.

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

    The default of strings is a tuple of them, which may be empty. With `names`, the choices are its names,
    unless others are given.
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


def as_default(value: Any) -> Any:
    """Return a field's default as an argument's: of strings a list, which ROS does not have empty."""
    return list(value or ("",)) if isinstance(value, tuple) else value


def arguments_of(component: Any) -> dict[str, Argument]:
    """Return the arguments of a component by name, in the order of its fields; empty without any."""
    declared = fields(component) if hasattr(component, "__dataclass_fields__") else ()
    return {
        each.name: Argument(each.name, as_default(each.default), **each.metadata)
        for each in declared
        if each.metadata and each.default is not MISSING
    }


def arguments_beside(row: Argument, value_of: Callable[[str], Any]) -> Iterator[Argument]:
    """Iterate over the arguments of a component that an argument names, and recursively of theirs.

    Their names have the argument's group as prefix.
    A component that cannot be imported has none: an error follows when it is constructed.

    Args:
        row: the argument with the name of a component as its value.
        value_of: from the name of an argument to its value; for one from this iterator only after it was
            yielded.
    """
    name = value_of(row.name)
    within = row.name.rpartition(".")[0]
    try:
        known = arguments_of((row.names or {})[name])
    except Exception:  # noqa: BLE001  another package's module may raise anything; "" names nothing
        return
    for each in known.values():
        named = replace(each, name=f"{within}.{each.name}", live=row.live)
        yield named
        if named.names is not None and named.name != row.name:
            yield from arguments_beside(named, value_of)

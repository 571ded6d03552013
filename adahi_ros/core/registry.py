# SPDX-License-Identifier: Apache-2.0
"""What there is of a kind, by name: what is shipped, and what other installed packages add by entry points.

A package adds one by a line of its `setup.py` or `pyproject.toml`, as to pytest (docs/extending.md). Its
name is read from what is installed. Code is imported when its name is looked up, not before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

T = TypeVar("T")


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

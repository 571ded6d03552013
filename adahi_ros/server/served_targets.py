# SPDX-License-Identifier: Apache-2.0
"""The policies that a verifier serves, by name."""

from __future__ import annotations

from dataclasses import dataclass

from adahi_ros.protocol.description import Description
from adahi_ros.protocol.request import RequestError, RequestFault
from adahi_ros.server.engine import Engine

TARGETS_MOST = 64
"""Of one verifier, as in `DescribeTarget.srv`."""


@dataclass(frozen=True, eq=False)
class ServedTarget:
    """A policy that robots may ask.

    Attributes:
        engine: replies.
        description: says what it is, and by which name.
        device: where it computes.
    """

    engine: Engine
    description: Description
    device: str = "cpu"


class ServedTargets:
    """By name; the first is asked where a request names none.

    Args:
        first: there is always one.
    """

    def __init__(self, first: ServedTarget) -> None:
        self._by_name = {first.description.target: first}

    @property
    def names(self) -> tuple[str, ...]:
        """Of all, the first one first."""
        return tuple(self._by_name)

    def named(self, name: str) -> ServedTarget:
        """Return the one that a request names.

        Raises:
            RequestError: none is called so.
        """
        if not name:
            return next(iter(self._by_name.values()))
        found = self._by_name.get(name)
        if found is None:
            there_are = ", ".join(map(repr, self._by_name))
            raise RequestError(RequestFault.UNKNOWN_TARGET, f"target: {name!r}, must be one of {there_are}")
        return found

    def check_fits(self, target: ServedTarget) -> None:
        """Check that a target can be served, beside the others or in the place of the one of its name.

        Robots that have been told what that one is are not told again: another must be alike.

        Raises:
            ValueError: it reads or proposes something else than the one of its name, or there are too many.
        """
        name = target.description.target
        before = self._by_name.get(name)
        if before is None:
            if len(self._by_name) >= TARGETS_MOST:
                raise ValueError(f"target: {name!r}, must be one of the {TARGETS_MOST} that are served")
            return
        if before.description.without_weights != target.description.without_weights:
            raise ValueError(
                f"target: {name!r}, is served and reads or proposes something else; must be another name"
            )

    def put(self, target: ServedTarget) -> None:
        """Serve a target from now on, in the place of the one of its name where there is one.

        Raises:
            ValueError: see `check_fits`.
        """
        self.check_fits(target)
        self._by_name[target.description.target] = target

    def remove(self, name: str) -> None:
        """Serve a target no more.

        Raises:
            ValueError: none is called so, or it is the first: a robot that names none has been told what that
                is, and would go on by the plans of another.
        """
        if name not in self._by_name:
            raise ValueError(f"target: {name!r}, must be one of {', '.join(map(repr, self._by_name))}")
        if name == self.names[0]:
            raise ValueError(f"target: {name!r}, is what robots get that name none, and stays")
        del self._by_name[name]

# SPDX-License-Identifier: Apache-2.0
"""What is kept of more than can be kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Generic, TypeVar

import numpy as np

from adahi_ros.core.randomness import step_uniforms

MOST = 20_000  # that are kept, unless told otherwise
R = TypeVar("R", bound="Rows")


@dataclass(frozen=True)
class Rows:
    """Arrays that have a row for each of N; the base of dataclasses of such."""

    def __len__(self) -> int:
        return len(getattr(self, self.arrays()[0]))

    @classmethod
    def arrays(cls) -> list[str]:
        """Return the names of what has a row for each, in the order of the arguments."""
        return [each.name for each in fields(cls)]

    def rows(self: R, which: np.ndarray) -> R:
        """Return some of them, by mask or index."""
        return replace(self, **{name: getattr(self, name)[which] for name in self.arrays()})

    @classmethod
    def joined(cls: type[R], parts: Sequence[R]) -> R:
        """Return all of some, at least one."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.arrays()))


class Reservoir(Generic[R]):
    """Rows that are kept: at most so many, of all that there were each with the same chance.

    Each gets a number as it comes, and the highest are kept (bottom-k sampling; Cohen and Kaplan, 2007), so
    that what is kept does not depend on how many come at once.

    Args:
        most: at most.
        seed: of the numbers.
    """

    def __init__(self, most: int, seed: int) -> None:
        if most < 1:
            raise ValueError(f"most: {most}, must be at least 1")
        self._most, self._seed = most, seed
        self._numbers = np.zeros(0)
        self._seen = 0
        self._kept: R | None = None

    def add(self, more: R) -> R:
        """Take rows in; return what is kept."""
        drawn = [step_uniforms(self._seed, "reservoir", 0, self._seen + row, 1) for row in range(len(more))]
        self._seen += len(more)
        numbers = np.concatenate([self._numbers, *drawn])
        joined = more if self._kept is None else type(more).joined([self._kept, more])
        which = np.sort(np.argsort(-numbers, kind="stable")[: self._most])
        kept = joined.rows(which)
        self._kept, self._numbers = kept, numbers[which]
        return kept

    def state(self) -> dict[str, np.ndarray]:
        """Return arrays to go on from."""
        if self._kept is None:
            return {}
        kept = {name: getattr(self._kept, name) for name in self._kept.arrays()}
        return {**kept, "numbers": self._numbers, "seen": np.array([self._seen])}

    def restore(self, state: dict[str, np.ndarray], kind: type[R]) -> None:
        """Go on from what `state` returned, of such rows.

        Raises:
            KeyError: something is missing.
        """
        if state:
            self._kept = kind(*(state[name] for name in kind.arrays()))
            self._numbers, self._seen = state["numbers"], int(state["seen"][0])

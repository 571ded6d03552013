# SPDX-License-Identifier: Apache-2.0
"""Keeps a random sample of a stream of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Generic, TypeVar

import numpy as np

from adahi_ros.core.randomness import step_uniforms

MOST = 20_000  # rows kept by default
R = TypeVar("R", bound="Rows")


@dataclass(frozen=True)
class Rows:
    """Arrays with a row for each of N; a base of dataclasses."""

    def __len__(self) -> int:
        return len(getattr(self, self.arrays()[0]))

    @classmethod
    def arrays(cls) -> list[str]:
        """Return the names of the fields with rows, in the order of the arguments."""
        return [each.name for each in fields(cls)]

    def rows(self: R, which: np.ndarray) -> R:
        """Return some of them, by mask or index."""
        return replace(self, **{name: getattr(self, name)[which] for name in self.arrays()})

    @classmethod
    def joined(cls: type[R], parts: Sequence[R]) -> R:
        """Return several joined into one; at least one."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.arrays()))


def repeated(person: np.ndarray, weight: int) -> np.ndarray:
    """Return rows by which steps of a person (N,) bool count `weight` times, the others once.

    Raises:
        ValueError: the weight is below 1.
    """
    if weight < 1:
        raise ValueError(f"person_weight: {weight}, must be at least 1")
    return np.repeat(np.arange(len(person)), np.where(person, weight, 1))


class Reservoir(Generic[R]):
    """Keeps a limited number of rows, each with the same probability.

    Each row gets a random number, and the highest are kept (bottom-k sampling; Cohen and Kaplan, 2007). So
    the result does not depend on the size of batches.

    Args:
        most: number of rows to keep.
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
        """Add rows; return the kept ones."""
        drawn = [step_uniforms(self._seed, "reservoir", 0, self._seen + row, 1) for row in range(len(more))]
        self._seen += len(more)
        numbers = np.concatenate([self._numbers, *drawn])
        joined = more if self._kept is None else type(more).joined([self._kept, more])
        which = np.sort(np.argsort(-numbers, kind="stable")[: self._most])
        kept = joined.rows(which)
        self._kept, self._numbers = kept, numbers[which]
        return kept

    def state(self) -> dict[str, np.ndarray]:
        """Return the state as arrays."""
        if self._kept is None:
            return {}
        kept = {name: getattr(self._kept, name) for name in self._kept.arrays()}
        return {**kept, "numbers": self._numbers, "seen": np.array([self._seen])}

    def restore(self, state: dict[str, np.ndarray], kind: type[R]) -> None:
        """Restore the arrays of `state`.

        Raises:
            KeyError: an array is missing.
        """
        if state:
            self._kept = kind(*(state[name] for name in kind.arrays()))
            self._numbers, self._seen = state["numbers"], int(state["seen"][0])

# SPDX-License-Identifier: Apache-2.0
"""Arrays with rows, and a random sample of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np

from adahi_ros.core.randomness import step_uniforms

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


def sampled(rows: R, most: int, seed: int) -> R:
    """Return a random sample of rows in their order, each with the same probability; all, if they are few.

    Each row gets a random number, and the highest are kept (bottom-k sampling; Cohen and Kaplan, 2007).
    """
    if most < 1:
        raise ValueError(f"most: {most}, must be at least 1")
    drawn = [step_uniforms(seed, "reservoir", 0, row, 1) for row in range(len(rows))]
    numbers = np.concatenate([np.zeros(0), *drawn])
    return rows.rows(np.sort(np.argsort(-numbers, kind="stable")[:most]))

"""Garbage values, all drawn from the seed of the trial and the number of the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

MANY = 100_000
FLOATS = (
    *(float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 5e-324, -5e-324, 1e-310, 1e38, -1e38),
    *(3.5e38, 1e300, 1e19, 1e9, -1e9, 1e5, 0.0, -0.0, 1.0, -1.0, 0.3, -0.3, 1e-9),
)
INTEGERS = (0, 1, -1, 2, 7, 63, 255, 256, 65535, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63), 10**400)
TEXTS = (
    *("", " ", ".", "\n", "a b", "ü", "関節", "\u202e", "🤖" * 9, "x" * 70_000, "nan", "1e9", "null", "-"),
    *("%s%n", "{0}", "'\"", "plate_roll_joint", "ball", "nowhere.yaml", "ball/", "rgb8", "state.0:4", "::"),
    *("state.0:99999999999", "position.", "/", "/dev/null", "~", "*", "a/msg/B", "std_msgs/msg/Bool"),
)


class Garbage:
    """What one input is made of.

    Args:
        seed: of the trial.
        number: of the input.
    """

    def __init__(self, seed: int, number: int) -> None:
        self.number = number
        self.draw = np.random.default_rng([seed, number])

    def chance(self, share: float) -> bool:
        return bool(self.draw.random() < share)

    def pick(self, values: Sequence[T]) -> T:
        return values[int(self.draw.integers(len(values)))]

    def count(self, low: int, high: int) -> int:
        """Draw from low to high, both included."""
        return int(self.draw.integers(low, high + 1))

    def float(self) -> float:
        """Draw a number: of the ends of what there is, or of the middle."""
        return self.pick(FLOATS) if self.chance(0.7) else float(self.draw.normal(scale=10.0))

    def integer(self, low: int = -(10**400), high: int = 10**400) -> int:
        """Draw from what is between, its ends most of all."""
        drawn = self.pick((*INTEGERS, low, high))
        return min(max(drawn, low), high)

    def text(self) -> str:
        """Draw text without NUL and surrogates, which no sender gets out."""
        if self.chance(0.7):
            return self.pick(TEXTS)
        letters = self.draw.integers(1, 0xD800, size=self.count(0, 12))
        return "".join(map(chr, letters.tolist()))

    def damaged(self, data: bytes) -> bytes:
        """Return bytes cut off, flipped, blanked, repeated, or put amid others."""
        if not data:
            return self.draw.bytes(20)
        at = self.count(0, len(data) - 1)
        length = self.count(1, max(1, min(64, len(data) - at)))
        how = self.count(0, 5)
        if how == 0:
            return data[:at]
        if how == 1:
            return data[:at] + bytes(length) + data[at + length :]
        if how == 2:
            return data[:at] + self.draw.bytes(length) + data[at + length :]
        if how == 3:
            return data[:at] + data[at : at + length] * 3 + data[at + length :]
        if how == 4:
            return data[:at] + b"\xff" * length + data[at + length :]
        flipped = bytearray(data)
        for _ in range(self.count(1, 8)):
            flipped[self.count(0, len(data) - 1)] ^= 1 << self.count(0, 7)
        return bytes(flipped)

    def leaf(self) -> Any:
        """Draw a value that a YAML or JSON file may have."""
        kind = self.count(0, 6)
        if kind == 0:
            return self.float()
        if kind == 1:
            return self.integer()
        if kind <= 3:
            return self.text()
        return self.pick((None, True, False, [], {}, [[]], [1, 2], {"a": 1}, [None], [self.float()] * 3))

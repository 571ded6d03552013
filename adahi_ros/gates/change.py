# SPDX-License-Identifier: Apache-2.0
"""A gate that requests as often as replies change what the robot does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_ros.core.registry import argument
from adahi_ros.gates.interface import Gate, GateContext

GROWTH = 4.0  # of the period by one reply at most: that it changed little may be chance


@dataclass(eq=False)
class ChangeGate(Gate):
    """Age of the intent beyond a period that fits what replies change. Its threshold is 0.

    A reply that changes the action by twice the tolerance halves the period; by half of it doubles it. So the
    robot asks rarely while replies say the same, and often where a goal moves that only the target sees.

    Raises:
        ValueError: names the argument, the value and what was allowed.
    """

    blind = True

    tolerance: float = argument(0.1, "Change by a reply that keeps the period, in action scales", 1e-6, 1e6)
    shortest: int = argument(5, "Shortest and first period, in steps", 1, 100_000)
    longest: int = argument(20, "Longest period, in steps", 1, 100_000)

    def __post_init__(self) -> None:
        if self.shortest > self.longest:
            raise ValueError(f"shortest: {self.shortest}, must be at most longest, {self.longest}")
        self._period = np.empty(0)  # (B,), in steps

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`; infinite, for a request at every step, where the proposer says no `change`."""
        change = None if context.proposal is None else context.proposal.change
        if change is None:
            return np.full(len(context.uniforms), np.inf)
        if context.begins or len(self._period) != len(change):
            self._period = np.full(len(change), float(self.shortest))
        factor = np.minimum(self.tolerance / np.maximum(change, 1e-9), GROWTH)
        period = np.clip(self._period * factor, self.shortest, self.longest)
        self._period = np.where(np.isnan(change), self._period, period)
        return context.age + 1.0 - self._period

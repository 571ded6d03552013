# SPDX-License-Identifier: Apache-2.0
"""A request period that adapts: longer after a plan that agreed, half as long after one that did not."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from adahi_ros.core.registry import argument
from adahi_ros.gates.interface import Gate, GateContext
from adahi_ros.gates.plans import Overlap

SHORTEST_OVERLAP = 2  # steps that must be left of a plan at the next request, to compare the two


@dataclass(eq=False)
class AdaptiveAgeGate(Gate):
    """Age of the plan in units of a period that adapts: at threshold 1, one request every period.

    Additive increase, multiplicative decrease, as SPO does with its horizon (arXiv 2603.19418), and TCP with
    its window. Where a fresh plan agrees with the previous one over their common steps, the period grows by a
    step; otherwise it is halved. It stays between one step and the age at which plans can be compared. A
    threshold below 1 requests more often, a higher one more rarely.

    Raises:
        ValueError: names the argument, the value and what was allowed.
    """

    blind = True

    tolerance: float = argument(0.5, "Largest distance, in action scales, of plans that agree", 1e-6, 1e6)
    first: float = argument(4.0, "Period at the start of an episode, in steps", 1.0, 1e6)

    def __post_init__(self) -> None:
        if not 0.0 < self.tolerance < math.inf:
            raise ValueError(f"tolerance: {self.tolerance}, must be above 0 and finite")
        if not 1.0 <= self.first < math.inf:
            raise ValueError(f"first: {self.first}, must be at least 1 and finite")
        self.period = np.zeros(0)
        """(B,) in steps; the current period."""

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`; infinite without a plan."""
        course, robots = context.course, len(context.uniforms)
        if course is None:
            return np.full(robots, np.inf)
        if context.begins or len(self.period) != robots:
            self.period = np.full(robots, self.first)
            self._overlap = Overlap(robots)
        _, apart = self._overlap.update(context.step, context.age, course)
        known = ~np.isnan(apart)
        agrees = known & (apart <= self.tolerance)
        period = np.where(agrees, self.period + 1.0, np.where(known, self.period / 2.0, self.period))
        planned = np.where(course.left > 0, context.age + course.left, np.inf)
        self.period = np.clip(period, 1.0, np.maximum(planned - SHORTEST_OVERLAP, 1.0))
        return np.where(course.left > 0, (context.age + 1.0) / self.period, np.inf)

# SPDX-License-Identifier: Apache-2.0
"""A period that follows how well plans hold: longer after one that did, half as long after another."""

from __future__ import annotations

import math

import numpy as np

from adahi_ros.gates.interface import Gate, GateContext
from adahi_ros.gates.plans import Overlap

SHORTEST_OVERLAP = 2  # steps that must be left of a plan as the next is asked for, to compare the two


class AdaptiveAgeGate(Gate):
    """The age of the plan in units of a period that adapts: at threshold 1, a plan is asked for every period.

    Additively up, multiplicatively down, as SPO does with its horizon (arXiv 2603.19418), and TCP with its
    window: where a fresh plan agrees with the one before it, over the steps that both are about, the period
    grows by a step; where it does not, it is halved. It stays between one step and what a plan can be
    compared at. A lower threshold than 1 asks more often, a higher one more rarely.

    Args:
        tolerance: in action scales, how far plans that agree lie apart.
        first: the period of an episode's start, in steps.

    Raises:
        ValueError: names the argument, the value and what was allowed.
    """

    blind = True

    def __init__(self, tolerance: float = 0.5, first: float = 4.0) -> None:
        if not 0.0 < tolerance < math.inf:
            raise ValueError(f"tolerance: {tolerance}, must be above 0 and finite")
        if not 1.0 <= first < math.inf:
            raise ValueError(f"first: {first}, must be at least 1 and finite")
        self._tolerance = tolerance
        self._first = first
        self.period = np.zeros(0)
        """(B,) in steps; the latest."""

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`; infinite without a plan."""
        course, robots = context.course, len(context.uniforms)
        if course is None:
            return np.full(robots, np.inf)
        if context.begins or len(self.period) != robots:
            self.period = np.full(robots, self._first)
            self._overlap = Overlap(robots)
        _, apart = self._overlap.update(context.step, context.age, course)
        known = ~np.isnan(apart)
        agrees = known & (apart <= self._tolerance)
        period = np.where(agrees, self.period + 1.0, np.where(known, self.period / 2.0, self.period))
        planned = np.where(course.left > 0, context.age + course.left, np.inf)
        self.period = np.clip(period, 1.0, np.maximum(planned - SHORTEST_OVERLAP, 1.0))
        return np.where(course.left > 0, (context.age + 1.0) / self.period, np.inf)

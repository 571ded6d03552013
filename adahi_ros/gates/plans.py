# SPDX-License-Identifier: Apache-2.0
"""Gates of robots that execute plans: each is one sign that a plan is outdated.

A sign that depends on earlier steps keeps them in the gate, for all robots, and forgets them at the start of
an episode. Where it starts in the middle, as after a change of a robot's gate, it knows nothing yet.
"""

from __future__ import annotations

import numpy as np

from adahi_ros.gates.interface import Gate, GateContext, PlanContext


def distance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the root mean square over the last axis of the difference of two arrays."""
    with np.errstate(over="ignore"):  # the result is then infinite
        apart: np.ndarray = np.sqrt(np.square(one - other).mean(axis=-1))
    return apart


def _begins(context: GateContext, robots: int) -> bool:
    """Whether a gate with state for this many robots has to reset it."""
    return context.begins or robots != len(context.uniforms)


class AgeGate(Gate):
    """Age of the plan, in control steps since its request: above k - 1, every k-th step sends a request."""

    blind = True

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        return context.age


class ExpectedErrorGate(Gate):
    """The error, in action scales, that the corrector expects of its own action."""

    blind = True

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`; infinite where unknown."""
        expected = None if context.proposal is None else context.proposal.expected_error
        return np.full(len(context.uniforms), np.inf) if expected is None else expected


class Overlap:
    """The distance of each robot's plan from its previous one, over their common steps.

    After arXiv 2606.08508, where the overlap error of consecutive chunks detects failures.

    Args:
        robots: B; none has a plan.
    """

    def __init__(self, robots: int) -> None:
        self._ahead, self._left = np.zeros((robots, 1, 1)), np.zeros(robots, dtype=np.int64)
        self._requested = np.full(robots, -1.0)

    def update(self, step: int, age: np.ndarray, course: PlanContext) -> np.ndarray:
        """Add the plans of a step, steps in order.

        Args:
            step: of the episode.
            age: (B,), steps since the request of the latest reply.
            course: the plans.

        Returns:
            (B,) in action scales, the distance of new plans from the previous one; NaN for old plans, and
            without common steps.
        """
        requested = np.where(np.isfinite(age), step - age, -1.0)
        new = requested > self._requested
        both = np.minimum(self._left - 1, course.left)  # one step of the previous plan has passed
        apart = np.full(len(age), np.nan)
        some = np.flatnonzero(new & (both > 0))
        if len(some):
            count = int(both[some].max())
            within = np.arange(count) < both[some, None]
            between = np.square(course.ahead[some, :count] - self._ahead[some, 1 : count + 1]).mean(axis=2)
            apart[some] = np.sqrt((between * within).sum(axis=1) / both[some])
        self._ahead, self._left, self._requested = course.ahead, course.left, requested
        return apart


class OverlapGate(Gate):
    """Distance, in action scales, of the latest plan from the previous one, over their common steps."""

    blind = True

    def __init__(self) -> None:
        self._latest = np.zeros(0)

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`; 0 until two plans have a step in common."""
        if context.course is None:
            return np.zeros(len(context.uniforms))
        if _begins(context, len(self._latest)):
            self._latest = np.zeros(len(context.uniforms))
            self._overlap = Overlap(len(context.uniforms))
        apart = self._overlap.update(context.step, context.age, context.course)
        self._latest = np.where(np.isnan(apart), self._latest, apart)
        return self._latest

# SPDX-License-Identifier: Apache-2.0
"""Gates of robots that execute plans: each is one sign that a plan is outdated.

A sign that depends on earlier steps keeps them in the gate, for all robots, and forgets them at the start of
an episode. Where it starts in the middle, as after a change of a robot's gate, it knows nothing yet.
"""

from __future__ import annotations

import numpy as np

from adahi_ros.core.signature import OBSERVATION
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


class PlanDeviationGate(Gate):
    """Distance, in action scales, of the proposed action from the planned one.

    The action deviation with the plan instead of the average. SV-VLA (arXiv 2604.02965) compares the
    actions of a light policy with those of a large one in this way. With a draft it reads the drawn codes.
    """

    blind = False

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`; infinite without a plan, 0 where the plan is followed unchanged."""
        course = context.course
        if course is None:
            return np.full(len(context.uniforms), np.inf)
        apart = distance(course.intended, course.ahead[:, 0])
        return np.where((course.left == 0) | np.isnan(apart), np.inf, apart)


class Innovations:
    """Changes in the observations of B robots that earlier changes do not predict.

    Each entry is expected to change by a share of its last change, fitted by recursive least squares with
    forgetting: so it may stand still (share 0) or keep its rate (share 1). The rest is its innovation, as of
        a
    Kalman filter, in units of its own recent scatter. A regression on all entries and the action together
    ranks plans' errors no better, and takes an episode to learn where there are many.

    Args:
        seen: (B, O), the first observation.
    """

    forgetting = 0.98
    memory = 0.95  # of the scatter
    vaguest = 1e6  # largest variance of a share: without changes it grows
    furthest = 10.0  # scatters at which innovations are clipped

    def __init__(self, seen: np.ndarray) -> None:
        self._steps = 0
        self._seen = seen
        self._change = np.zeros_like(seen)
        self._share = np.ones_like(seen)
        self._vague = np.full_like(seen, self.vaguest)
        self._variance = np.zeros_like(seen)
        self._weight = 0.0

    def update(self, seen: np.ndarray) -> np.ndarray:
        """Add the next observation (B, O); return the mean square (B,) of its innovations."""
        self._steps += 1
        change = seen - self._seen
        innovation = change - self._share * self._change
        squared = np.zeros(len(seen))
        if self._steps > 2:  # earlier, there is no scatter
            with np.errstate(divide="ignore", invalid="ignore"):
                strange = np.abs(innovation) / np.sqrt(self._variance / self._weight)
            squared = np.square(np.minimum(np.nan_to_num(strange), self.furthest)).mean(axis=1)
        if self._steps > 1:  # earlier, there is no change to predict from
            self._learn(innovation)
        self._seen, self._change = seen, change
        return squared

    def _learn(self, innovation: np.ndarray) -> None:
        gain = self._vague * self._change / (self.forgetting + self._vague * self._change**2)
        self._share = self._share + gain * innovation
        left = (1.0 - gain * self._change) * self._vague
        self._vague = np.minimum(left / self.forgetting, self.vaguest)
        self._variance = self.memory * self._variance + (1.0 - self.memory) * innovation**2
        self._weight = self.memory * self._weight + 1.0 - self.memory


class SurpriseGate(Gate):
    """Change of the observation since the plan's request that earlier changes did not predict.

    The root of the sum, over the steps since the request, of the mean square of the `Innovations`.
    """

    blind = True

    def __init__(self) -> None:
        self._sum = np.zeros(0)

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        seen = context.observed[OBSERVATION].astype(np.float64)
        if _begins(context, len(self._sum)):
            self._sum, self._innovations = np.zeros(len(seen)), Innovations(seen)
        else:
            since = np.where(context.age <= 1, 0.0, self._sum)
            self._sum = since + self._innovations.update(seen)
        surprise: np.ndarray = np.sqrt(self._sum)
        return surprise


class ReversalGate(Gate):
    """How much the executed actions change direction: a moving average, in action scales.

    For each entry that reverses, the geometric mean of the changes before and after; 0 for other entries.
    After arXiv 2605.28726, which uses such reversals as signs of a failing policy.
    """

    blind = True
    _memory = 0.8

    def __init__(self) -> None:
        self._average = np.zeros(0)

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`."""
        if context.course is None:
            return np.zeros(len(context.uniforms))
        executed = context.course.executed
        if _begins(context, len(self._average)):
            self._executed, self._change = executed, np.full_like(executed, np.nan)
            self._average = np.zeros(len(executed))
        change = executed - self._executed
        turned = np.sqrt(np.maximum(-np.nan_to_num(change * self._change), 0.0)).mean(axis=1)
        self._average = self._memory * self._average + (1.0 - self._memory) * turned
        self._executed, self._change = executed, change
        return self._average


class Overlap:
    """The distance of each robot's plan from its previous one, over their common steps.

    After arXiv 2606.08508, where the overlap error of consecutive chunks detects failures.

    Args:
        robots: B; none has a plan.
    """

    def __init__(self, robots: int) -> None:
        self._ahead, self._left = np.zeros((robots, 1, 1)), np.zeros(robots, dtype=np.int64)
        self._requested = np.full(robots, -1.0)

    def update(self, step: int, age: np.ndarray, course: PlanContext) -> tuple[np.ndarray, np.ndarray]:
        """Add the plans of a step, steps in order.

        Args:
            step: of the episode.
            age: (B,), steps since the request of the latest reply.
            course: the plans.

        Returns:
            (B,) bool, which plans are new; and (B,) in action scales, the distance from the previous plan;
            NaN
                without common steps, and for old plans.
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
        return new, apart


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
        _, apart = self._overlap.update(context.step, context.age, context.course)
        self._latest = np.where(np.isnan(apart), self._latest, apart)
        return self._latest

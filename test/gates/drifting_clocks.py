"""Simulated drifts: tests whether a threshold learned online keeps its bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_ros.core.signature import Observations
from adahi_ros.gates.interface import GateContext, PlanContext
from adahi_ros.gates.online import OnlineGate

DRIFTS = 100
TOLERANCE = 0.5
BOUND = 0.1
RATE = 0.1
FOLLOWED = "age"  # the gate with a drifting score: it returns its input
BOUND_STEPS = 4000
RATE_STEPS = 1500
RATE_PACE = 0.05


@dataclass(frozen=True)
class Drifted:
    """Results of T steps of `DRIFTS` robots.

    Attributes:
        requested, wrong: (T, DRIFTS) bool.
        gate: that decided.
    """

    requested: np.ndarray
    wrong: np.ndarray
    gate: OnlineGate

    @property
    def missed(self) -> np.ndarray:
        """(DRIFTS,), the share of wrong steps without a request."""
        share: np.ndarray = (self.wrong & ~self.requested).mean(axis=0)
        return share


def scored(step: int, scores: np.ndarray, uniforms: np.ndarray) -> GateContext:
    """Return the inputs of a gate on `FOLLOWED` for robots with these scores (B,) and draws (B,)."""
    robots = len(uniforms)
    nothing, one = np.zeros(robots), np.zeros((robots, 1))
    course = PlanContext(one, one, one[:, None], np.ones(robots, np.int64))
    return GateContext(
        step, {}, Observations({}, {}), None, nothing, scores, uniforms, None, course, step == 0
    )


def drift(gate: OnlineGate, steps: int, seed: int = 0, useless: bool = False) -> Drifted:
    """Run a gate while draft, task and link change, each at its own time in every drift.

    The draft's errors grow or shrink. Another task changes the score's units and predictive power.
    With another link more robots lack a plan, and replies come up to three steps later.

    Args:
        gate: on `FOLLOWED`.
        steps: T.
        seed: of all draws.
        useless: the score does not predict errors.
    """
    draw, who = np.random.default_rng(seed), np.arange(DRIFTS)
    changes = draw.integers(steps, size=(3, DRIFTS))
    size = np.exp(draw.normal(-1.2, 0.6, size=(2, DRIFTS)))
    unit, telling = np.exp(draw.normal(0.0, 3.0, size=(2, DRIFTS))), draw.random((2, DRIFTS))
    lost, late = 0.05 * draw.random((2, DRIFTS)), draw.integers(4, size=(2, DRIFTS))
    requested, wrong = np.zeros((2, steps, DRIFTS), dtype=bool)
    under_way: list[tuple[np.ndarray, int, np.ndarray]] = []
    for step in range(steps):
        draft, task, link = (step >= changes).astype(int)
        error = size[draft, who] * np.exp(0.8 * draw.normal(size=DRIFTS))
        noise = np.exp(0.8 * draw.normal(size=DRIFTS))
        share = 0.0 if useless else telling[task, who]
        scores = unit[task, who] * (share * error + (1.0 - share) * noise)
        scores[draw.random(DRIFTS) < lost[link, who]] = np.inf
        scores[draw.random(DRIFTS) < 0.01] = np.nan
        asks = ~(gate.score(scored(step + 1, scores, draw.random(DRIFTS))) <= 0.0)
        under_way.append((np.where(asks, step + late[link, who], -1), step + 1, error))
        for due, requested_at, fresh in under_way:
            here = np.flatnonzero(due == step)
            gate.learn(requested_at, fresh[here, None], here)
        under_way = under_way[-4:]
        requested[step], wrong[step] = asks, error > TOLERANCE
    return Drifted(requested, wrong, gate)


def drift_of_bound(seed: int = 0) -> Drifted:
    """Run the gate that bounds wrong steps without a request by `BOUND`."""
    return drift(OnlineGate(FOLLOWED, error_share=BOUND, tolerance=TOLERANCE), BOUND_STEPS, seed)


def drift_of_rate(seed: int = 2) -> Drifted:
    """Run the gate that keeps the rate of requests at `RATE`."""
    return drift(OnlineGate(FOLLOWED, rate=RATE, pace=RATE_PACE), RATE_STEPS, seed)

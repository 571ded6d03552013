# SPDX-License-Identifier: Apache-2.0
"""A threshold that tracks a wanted rate, or a bound on errors without a request, while scores drift.

Any gate's score s_t is first ranked among its own last ones: u_t in [0, 1], independent of units and
drift. The gate requests where u_t > q_t. It also requests at a known share e of the steps, drawn at
random: *exploration*, since steps without a request are not observed. a_t = 1 where it requested for either
reason.

**A wanted rate r.** q_(t+1) = q_t + g (a_t - r), the quantile tracking of adaptive conformal inference
(Gibbs and Candès, 2021).
Theorem: |mean of a_t over T steps - r| <= (1 + 2 g) / (g T), for any sequence of scores.
Proof: above 1 nothing is requested, below 0 everything, so q stays in [-g, 1 + g], and the sum of a_t - r is
(q_(T+1) - q_1) / g. Assumption: the requests at any threshold (exploration, infinite or NaN scores, robots
without a plan) are a share below r; otherwise that share is the rate.

**A wanted bound b on errors without a request.** Let w_t = 1 where a fresh plan is further from the
action to be executed than the tolerance. The loss of a decision is L_t = 1 where it sends no request and
w_t = 1. It is observed where exploration requested, and counts 1 / e there, Z_t = L_t / e, else Z_t = 0:
q_(t+1) = min(1, q_t + g (c - Z_t)), from q_1 = 0, the safe side; c < b leaves room for chance. This is the
intermittent quantile tracking of arXiv 2410.08852 with a loss of conformal decision theory (arXiv
2310.05921), where the safe decision is to request.
Theorem: the mean of Z_t over T steps is at most c + 1 / (e T), for any sequence. The mean of L_t
differs from it by a martingale: with probability 1 - d it is at most
c + 1 / (e T) + sqrt(2 log(1 / d) m / (e T)) + log(1 / d) / (e T), m any bound on that mean (Freedman, 1975).
The share of wrong executed actions is 1 - e of that.
Proof: at or below 0 everything is requested and Z_t is 0, so q is never below -g / e; it is clipped only
downwards, so that the sum of c - Z_t is at least (q_(T+1) - q_1) / g.
Assumptions: exploration's draws are independent of the robot's observations. Its requests are answered
before the next decision; where replies arrive later, 1 / (e T) grows by the number of open requests. A lost
reply counts as right: where a share is lost, the bound holds for b divided by the share that is not lost.
Nothing is assumed of policies, tasks or scores: these may drift, even against the gate. A bad score costs
requests, never the bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from adahi_ros.core.registry import argument, arguments_of
from adahi_ros.gates.gate_config import ThresholdedGate
from adahi_ros.gates.interface import Gate, GateContext
from adahi_ros.gates.plans import distance
from adahi_ros.gates.registry import GATES

ROOM = 0.7  # c / b
RANKED = 200  # number of last scores for a rank
RENAMED = {"gate": "base", "wrong": "error_share"}  # older names of arguments, in methods by name
LATEST_REPLY = 64  # steps; later replies are not used


@dataclass(frozen=True)
class OnlineState:
    """State of a robot's threshold, to publish.

    Attributes:
        threshold: on ranks, about 0 to 1: the share of the last scores without a request.
        steps: so far.
        rate: share of them with a request.
        explored: number of requests by exploration alone that were replied to.
        wrong: estimated share of steps that were wrong without a request; NaN without exploration.
    """

    threshold: float
    steps: int
    rate: float
    explored: int
    wrong: float


class Ranks:
    """Each score's rank among the last ones of its robot, in [0, 1]; equal ones count half.

    Args:
        robots: B.
    """

    def __init__(self, robots: int) -> None:
        self._last = np.full((robots, RANKED), np.nan)
        self._next = np.zeros(robots, dtype=np.int64)

    def rank(self, scores: np.ndarray) -> np.ndarray:
        """Return the ranks (B,) of scores (B,), none NaN, then store the finite ones."""
        held = ~np.isnan(self._last)
        below = ((self._last < scores[:, None]) & held).sum(axis=1)
        equal = ((self._last == scores[:, None]) & held).sum(axis=1)
        ranks: np.ndarray = (below + 0.5 * equal + 0.5) / (held.sum(axis=1) + 1.0)
        finite = np.flatnonzero(np.isfinite(scores))
        self._last[finite, self._next[finite] % RANKED] = scores[finite]
        self._next[finite] += 1
        return ranks


def _other_draw(uniforms: np.ndarray) -> np.ndarray:
    """Return draws in [0, 1) from the low bits of other draws, which another gate may use themselves."""
    return (uniforms * 2.0**26) % 1.0


@dataclass(eq=False)
class OnlineGate(Gate):
    """Another gate with a threshold learned at run time. Its own threshold is 0.

    The score is the rank minus the learned threshold; infinite where exploration requests, or the
    other gate's score is infinite or NaN. The learned threshold is kept across episodes.

    Raises:
        ValueError: names the argument, the value and what was allowed.
    """

    base: str = argument("", "The gate that provides the score", optional=True, names=GATES)
    rate: float = argument(0.0, "Wanted share of steps with a request; 0 for none", 0.0, 1.0)
    error_share: float = argument(
        0.0, "Wanted bound on the share of steps that are wrong without a request; 0 for none", 0.0, 1.0
    )
    tolerance: float = argument(
        0.5, "Distance from a fresh plan, in action scales, above which a step is wrong", 1e-6, 1e6
    )
    explore: float = argument(
        0.0, "Share of steps with a request at random; 0 for 0.05 with error_share, none with rate", 0.0, 1.0
    )
    pace: float = argument(0.02, "How far one step moves the threshold", 0.0, 1.0)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Of the other gate."""

    _threshold: np.ndarray = field(init=False)
    _ranks: Ranks = field(init=False)
    _steps: int = field(init=False)
    _requested: np.ndarray = field(init=False)
    _losses: np.ndarray = field(init=False)
    _explored: np.ndarray = field(init=False)
    _awaited: dict[int, tuple[np.ndarray, np.ndarray]] = field(init=False)
    """By step: intended (B, A), and the exploring robots."""

    @classmethod
    def made(cls, **arguments: Any) -> OnlineGate:
        """Return a gate with these arguments; those that it does not know are the other gate's."""
        given = {RENAMED.get(name, name): value for name, value in arguments.items()}
        if len(given) < len(arguments):
            raise ValueError(f"gate online: {', '.join(arguments)}, must not name an argument twice")
        known = arguments_of(cls)
        own = {name: value for name, value in given.items() if name in known}
        return cls(**own, arguments={name: each for name, each in given.items() if name not in known})

    def __post_init__(self) -> None:
        if (self.rate == 0.0) == (self.error_share == 0.0):
            raise ValueError(f"rate, error_share: {self.rate}, {self.error_share}, must be one of the two")
        self._bounds = self.rate == 0.0
        self._wanted = self.error_share if self._bounds else self.rate
        self._explore = self.explore or (0.05 if self._bounds else 0.0)
        for name, value, least, most in (
            ("error_share" if self._bounds else "rate", self._wanted, 0.0, 1.0),
            ("explore", self._explore, 0.0 if self._bounds else -1.0, 1.0 if self._bounds else self.rate),
            ("pace", self.pace, 0.0, 1.0),
            ("tolerance", self.tolerance, 0.0, math.inf),
        ):
            if not least < value < most:
                raise ValueError(f"{name}: {value}, must be between {max(least, 0.0)} and {most}")
        self._of = ThresholdedGate(self.base, arguments=self.arguments).gate
        self.blind = self._of.blind
        self._start(0)

    @property
    def states(self) -> list[OnlineState]:
        """State of every robot's threshold."""
        steps = max(self._steps, 1)
        wrong = self._losses / steps if self._explore else np.full(len(self._threshold), np.nan)
        columns = self._threshold, self._requested / steps, self._explored, wrong
        return [
            OnlineState(float(q), self._steps, float(rate), int(explored), float(loss))
            for q, rate, explored, loss in zip(*columns, strict=True)
        ]

    @property
    def state(self) -> dict[str, float]:
        """See `Gate`."""
        return {name: float(value) for states in self.states[:1] for name, value in asdict(states).items()}

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`; steps in order."""
        robots = len(context.uniforms)
        if robots != len(self._threshold):
            self._start(robots)
        if context.begins:
            self._awaited.clear()
        score = self._of.score(context)
        forced = np.isnan(score) | (score == np.inf)
        ranks = self._ranks.rank(np.where(forced, np.inf, score))
        decided = forced | (ranks > self._threshold)
        explored = _other_draw(context.uniforms) < self._explore
        margin = np.where(forced | explored, np.inf, ranks - self._threshold)
        requested = decided | explored
        self._steps += 1
        self._requested += requested
        if self._bounds:
            self._threshold = np.minimum(self._threshold + self.pace * ROOM * self._wanted, 1.0)
        else:
            moved = self._threshold + self.pace * (requested - self._wanted)
            self._threshold = np.clip(moved, -self.pace, 1.0 + self.pace)
        if context.course is not None:
            self._awaited[context.step] = (context.course.intended, explored & ~decided)
            while (oldest := next(iter(self._awaited))) <= context.step - LATEST_REPLY:
                del self._awaited[oldest]
        return margin

    def learn(self, requested_at: int, fresh: np.ndarray, rows: np.ndarray) -> None:
        """See `Gate`."""
        intended, counts = self._awaited.get(requested_at, (None, None))
        if intended is None or counts is None:
            return
        counted = counts[rows]
        counts[rows] = False  # a duplicate reply counts once
        wrong = ~(distance(intended[rows], fresh) <= self.tolerance)
        loss = np.where(counted & wrong, 1.0 / self._explore if self._explore else 0.0, 0.0)
        self._explored[rows] += counted
        self._losses[rows] += loss
        if self._bounds:
            self._threshold[rows] -= self.pace * loss

    def _start(self, robots: int) -> None:
        self._threshold = np.full(robots, 0.0 if self._bounds else 1.0 - self._wanted)
        self._ranks = Ranks(robots)
        self._steps = 0
        self._requested, self._losses = np.zeros(robots), np.zeros(robots)
        self._explored = np.zeros(robots, dtype=np.int64)
        self._awaited = {}

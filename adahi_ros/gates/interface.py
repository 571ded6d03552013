# SPDX-License-Identifier: Apache-2.0
"""What a gate is, and what a robot knows when it decides whether to send a request."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Observations


@dataclass(frozen=True)
class LinkEstimate:
    """What the robot knows of its link; NaN before the first request.

    Attributes:
        rtt_ms: average round-trip time, without the target's compute.
        rtt_deviation_ms: average distance from it.
        loss: average share of requests that seem to have lost a packet on their way.
        misses: average share of requests without a reply by the deadline.
        goodput_bytes_s: of requests replied to in time and their replies, per second.
        requests: requests so far.
        replies: of them, those with a reply in time.
    """

    rtt_ms: float = math.nan
    rtt_deviation_ms: float = math.nan
    loss: float = math.nan
    misses: float = math.nan
    goodput_bytes_s: float = 0.0
    requests: int = 0
    replies: int = 0


@dataclass(frozen=True)
class PlanContext:
    """What B robots have done, would do, and are to do by what the target has said; in action scales.

    Attributes:
        executed: (B, A), commanded last; NaN before the first.
        intended: (B, A), what they would do now; NaN where there is nothing.
        ahead: (B, N, A), the plan from this step on, the last action repeated; zeros without any.
        left: (B,), how many of these are planned.
    """

    executed: np.ndarray
    intended: np.ndarray
    ahead: np.ndarray
    left: np.ndarray


@dataclass(frozen=True)
class GateContext:
    """What B robots know when they decide.

    Attributes:
        step: of the episode, from 0.
        observed: by name, (B, size), all that the robot has observed now, read by its policy or not; no goal
            where that is not told any.
        observations: what the policy reads of that and of the steps before.
        proposal: what they would do now; None where they go on by their plan.
        deviation: (B,), the action deviation of what they would do.
        age: (B,), how many steps ago the target's latest reply was asked for; infinite before the first.
        uniforms: (B,) in [0, 1), for gates that draw.
        link: how the way to the target is; None where there is no link, as in an evaluation in process.
        course: what they do and plan; None where nobody says.
        begins: it is the first step that they make in an episode, whatever its number: a gate that keeps
            anything of the steps before forgets it.
    """

    step: int
    observed: Mapping[str, np.ndarray]
    observations: Observations
    proposal: Proposal | None
    deviation: np.ndarray
    age: np.ndarray
    uniforms: np.ndarray
    link: LinkEstimate | None = None
    course: PlanContext | None = None
    begins: bool = False


class Gate(ABC):
    """Scores what B robots would do. A new gate derives from this.

    Attributes:
        blind: it decides without a look at what was drawn. Behind such a gate, what the verifier returns is
            distributed as the target's proposals; others send some draws and keep others, and there it is
            not (benchmarks/exactness.py).
    """

    blind: bool = False

    @abstractmethod
    def score(self, context: GateContext) -> np.ndarray:
        """Return the scores (B,)."""

    @property
    def learns(self) -> bool:
        """Whether it learns from replies: it has a `learn` of its own."""
        return type(self).learn is not Gate.learn

    @property
    def state(self) -> dict[str, float]:
        """What it has learned of the first robot, by name; empty where it learns nothing."""
        return {}

    def learn(self, requested_at: int, fresh: np.ndarray, rows: np.ndarray) -> None:  # noqa: B027
        """Learn what fresh plans say of the step that requested them; by default nothing.

        Args:
            requested_at: that step, of this episode; an unknown one is ignored.
            fresh: (M, A) in action scales, their first actions.
            rows: (M,), the robots that they are for, by index.
        """

# SPDX-License-Identifier: Apache-2.0
"""The interface of gates, and a robot's knowledge when it decides whether to send a request."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import Field, dataclass
from typing import Any

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Observations
from adahi_ros.core.texts import misspelt


@dataclass(frozen=True)
class LinkEstimate:
    """A robot's estimate of its link; NaN before the first request.

    Attributes:
        rtt_ms: average round-trip time, without the target's compute.
        rtt_deviation_ms: average distance from it.
        loss: average share of requests that probably lost a packet.
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
    """Actions that B robots executed, would execute and plan, in action scales.

    Attributes:
        executed: (B, A), the last commanded action; NaN before the first.
        intended: (B, A), the action that they would execute now; NaN where there is none.
        ahead: (B, N, A), the plan from this step on, its last action repeated; zeros without a plan.
        left: (B,), how many of these actions are planned.
    """

    executed: np.ndarray
    intended: np.ndarray
    ahead: np.ndarray
    left: np.ndarray


@dataclass(frozen=True)
class GateContext:
    """The knowledge of B robots when they decide.

    Attributes:
        step: step number within the episode, from 0.
        observed: from names to arrays (B, size), the newest observation, including parts that the policy does
            not read. Without a goal if the policy reads none.
        observations: the window of observations that the policy reads.
        proposal: what the robots would do now; None where they execute their plan as it is.
        deviation: (B,), action deviation of the proposed action, in action scales.
        age: (B,), steps since the request of the latest reply; infinite before the first.
        uniforms: (B,) in [0, 1), for gates that draw.
        link: estimate of the link; None in an evaluation without a link.
        course: what the robots executed, would execute and plan; None where it is not known.
        begins: first step of an episode; a gate that keeps a state must reset it.
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
    """Scores the proposed actions of B robots. A new gate derives from this.

    A gate with arguments is a dataclass; fields made with `argument` are parameters of the robot's node.
    A class with a misspelt name of this class is a `TypeError`: it would not have the effect that was meant.

    Attributes:
        blind: it decides without the sampled codes. The verifier's result for drafts of a blind gate is
            distributed as the target's proposals. Other gates select among the samples, and there it is not.
    """

    blind: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = [name for name, value in vars(cls).items() if not isinstance(value, Field)]
        fault = misspelt(own, [name for name in vars(Gate) if not name.startswith("_")])
        if fault:
            raise TypeError(f"{cls.__name__}: {fault}")

    @abstractmethod
    def score(self, context: GateContext) -> np.ndarray:
        """Return the scores (B,)."""

    @property
    def learns(self) -> bool:
        """Whether it learns from replies: it overrides `learn`."""
        return type(self).learn is not Gate.learn

    @property
    def state(self) -> dict[str, float]:
        """The learned values of the first robot, by name; empty where it learns nothing."""
        return {}

    def learn(self, requested_at: int, fresh: np.ndarray, rows: np.ndarray) -> None:  # noqa: B027
        """Learn from fresh plans for the step that requested them; by default nothing.

        Args:
            requested_at: that step, of this episode; an unknown one is ignored.
            fresh: (M, A) in action scales, their first actions.
            rows: (M,), their robots, by index.
        """

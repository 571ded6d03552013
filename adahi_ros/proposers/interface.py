# SPDX-License-Identifier: Apache-2.0
"""What a proposer is, and what a robot knows when it proposes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.observation_buffer import ObservationBuffer
from adahi_ros.core.plan import Plan
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Observations


@dataclass(frozen=True)
class ProposerContext:
    """What B robots know when they propose.

    Attributes:
        step: of the episode, from 0.
        observations: as the policy reads them.
        memory: what was observed, the present step included.
        plan: what lies ahead, of what the target has said.
        draws: (B, policy.draws) uniform in [0, 1).
        temperature: of the draft's distributions.
        begins: it is the first step that they make in an episode, whatever its number: a proposer that keeps
            anything of the steps before forgets it.
        executed: (B, A), commanded last; NaN before the first, None where nobody says.
    """

    step: int
    observations: Observations
    memory: ObservationBuffer
    plan: Plan
    draws: np.ndarray
    temperature: float
    begins: bool = False
    executed: np.ndarray | None = None


class Proposer(ABC):
    """Proposes actions on the robot. A new proposer derives from this.

    Attributes:
        needs_plan: where a robot has no plan, it has nothing to propose; the target is then requested.
    """

    needs_plan: bool = False

    @abstractmethod
    def propose(self, context: ProposerContext) -> Proposal | None:
        """Propose actions from the present step on, sound or not; None goes on by the plan as it is."""

    @property
    def observes(self) -> bool:
        """Whether it learns from replies: it has an `observe_reply` of its own."""
        return type(self).observe_reply is not Proposer.observe_reply

    def observe_reply(self, requested_at: int, verdict: Verdict, rows: np.ndarray) -> None:  # noqa: B027
        """Learn from what is sound of a reply; by default nothing.

        Args:
            requested_at: the step of its request.
            verdict: of the target.
            rows: (M,), the robots that it is for, by index.
        """

# SPDX-License-Identifier: Apache-2.0
"""The interface of proposers, and a robot's knowledge when it proposes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.observation_buffer import ObservationBuffer
from adahi_ros.core.plan import Plan
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Observations
from adahi_ros.policies.interface import Actor

if TYPE_CHECKING:
    from adahi_ros.proposers.held import Held


@dataclass(frozen=True)
class ProposerContext:
    """The knowledge of B robots when they propose.

    Attributes:
        step: of the episode, from 0.
        observations: the policy's input.
        memory: observations, including the present step.
        plan: the target's planned actions.
        draws: (B, policy.draws) uniform in [0, 1).
        temperature: of the draft's distributions.
        begins: it is their first step in an episode, with any number: a proposer forgets its state of
            earlier steps.
        executed: (B, A), commanded last; NaN before the first, None if unknown.
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

    It is made from the robot's policy and its arguments. It opens its own files, which arguments name.

    Attributes:
        needs_policy: it proposes by the robot's policy. Without that, other proposers hold the robot where
            they have no plan.
        needs_plan: without a plan it has nothing to propose; the robot then sends a request.
        drafts_plans: where it has no plan, it proposes a draft of one, for the target to verify.
        interprets: it executes something else of a reply than its actions, see `understood`.
        decodes: namely its own actions for the reply's codes; replies then need no actions.
        actor: what it acts by, which checks and scales its actions; None for the robot's policy.
        held: what it acts by instead of the plan; None for the plan.
        wanted_horizon, wanted_intent: of the target, see `Wants`.
    """

    needs_policy: bool = True
    needs_plan: bool = False
    drafts_plans: bool = False
    interprets: bool = False
    decodes: bool = False
    actor: Actor | None = None
    held: Held | None = None
    wanted_horizon: int | None = None
    wanted_intent: tuple[str, int] | None = None

    @abstractmethod
    def propose(self, context: ProposerContext) -> Proposal | None:
        """Propose actions from the present step on, valid or not; None executes the plan unchanged."""

    def understood(self, verdict: Verdict, proposal: Proposal, rows: np.ndarray) -> Verdict:
        """Return a reply with the actions to execute; by default those that it has.

        Args:
            verdict: of the target, for M robots.
            proposal: of B robots, which the reply is about.
            rows: (M,), the robots of the reply, by mask or index.
        """
        return verdict

    @property
    def observes(self) -> bool:
        """Whether it learns from replies: it overrides `observe_reply`."""
        return type(self).observe_reply is not Proposer.observe_reply

    def observe_reply(self, requested_at: int, verdict: Verdict, rows: np.ndarray) -> None:  # noqa: B027
        """Learn from the valid part of a reply; by default nothing.

        Args:
            requested_at: the step of its request.
            verdict: of the target.
            rows: (M,), its robots, by index.
        """

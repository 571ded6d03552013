# SPDX-License-Identifier: Apache-2.0
"""Proposers that execute the target's plan, unchanged or corrected."""

from __future__ import annotations

import numpy as np

from adahi_ros.core.observation_buffer import ObservationBuffer
from adahi_ros.core.plan import Plan
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import OBSERVATION
from adahi_ros.policies.corrector.corrector import Corrector
from adahi_ros.policies.corrector.corrector_features import PlanView
from adahi_ros.policies.interface import Actor
from adahi_ros.proposers.interface import Proposer, ProposerContext


class PlanProposer(Proposer):
    """Executes the target's plan unchanged.

    Args:
        actor: the policy with the robot's signature.
    """

    needs_plan = True

    def __init__(self, actor: Actor) -> None:
        pass

    def propose(self, context: ProposerContext) -> None:
        """See `Proposer`."""
        return


class CorrectorProposer(Proposer):
    """Executes the target's plan, and corrects each action using the newest observation.

    Args:
        corrector: of the plan.
    """

    needs_plan = True

    def __init__(self, corrector: Corrector) -> None:
        self._corrector = corrector

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`; one action; NaN without a plan."""
        signature = self._corrector.signature
        goal = signature.condition(context.observations)
        view = plan_view(context.memory, context.plan, context.step, goal, signature.horizon)
        actions, expected_error = self._corrector.correct(view)
        unplanned = context.plan.left(context.step) == 0
        actions[unplanned], expected_error[unplanned] = np.nan, np.inf
        return Proposal(actions[:, None], expected_error=expected_error)


def plan_view(memory: ObservationBuffer, plan: Plan, step: int, goal: np.ndarray, horizon: int) -> PlanView:
    """Return a corrector's input for plans; arbitrary for a robot without one.

    Args:
        memory: observations, including the present step.
        plan: the planned actions.
        step: of the episode, from 0.
        goal: (B, G) of the robots.
        horizon: T, actions of a whole plan.
    """
    age = np.where(np.isfinite(plan.age(step)), plan.age(step), 0).astype(np.int64)
    now = np.full(len(age), step)
    return PlanView(
        observation=memory.at(OBSERVATION, now),
        previous=memory.at(OBSERVATION, now - 1),
        at_request=memory.at(OBSERVATION, now - age),
        goal=goal,
        ahead=plan.ahead(step, horizon),
        left=np.clip(plan.left(step), 1, horizon),
        age=age,
    )

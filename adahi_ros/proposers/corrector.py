# SPDX-License-Identifier: Apache-2.0
"""A proposer that corrects the target's plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adahi_ros.core.observation_buffer import ObservationBuffer
from adahi_ros.core.plan import Plan
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.registry import argument
from adahi_ros.core.signature import OBSERVATION
from adahi_ros.policies.corrector.corrector import Corrector
from adahi_ros.policies.corrector.corrector_checkpoint import load_corrector
from adahi_ros.policies.corrector.corrector_features import PlanView
from adahi_ros.policies.interface import Actor
from adahi_ros.proposers.interface import Proposer, ProposerContext
from adahi_ros.proposers.opened_file import FILE, opened


@dataclass(eq=False)
class CorrectorProposer(Proposer):
    """Executes the target's plan, and corrects each action using the newest observation.

    Raises:
        ValueError: there is no corrector in the file, or it is of another robot.
    """

    needs_policy = False
    needs_plan = True

    policy: Actor  # the robot's or, without a file, the corrector
    file: str = argument("", FILE, optional=True)

    def __post_init__(self) -> None:
        self.actor: Corrector = opened(self.policy, self.file, Corrector, _loaded)
        self.wanted_horizon = self.actor.signature.horizon

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`; one action; NaN without a plan."""
        signature = self.actor.signature
        goal = signature.condition(context.observations)
        view = plan_view(context.memory, context.plan, context.step, goal, signature.horizon)
        actions, expected_error = self.actor.correct(view)
        unplanned = context.plan.left(context.step) == 0
        actions[unplanned], expected_error[unplanned] = np.nan, np.inf
        return Proposal(actions[:, None], expected_error=expected_error)


def _loaded(path: Path) -> Corrector:
    """Load a corrector, and run it once, because the first run is slow."""
    corrector = Corrector(load_corrector(path))
    corrector.correct(PlanView.nothing(corrector.signature))
    return corrector


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

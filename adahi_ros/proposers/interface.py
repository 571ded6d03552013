# SPDX-License-Identifier: Apache-2.0
"""Who proposes actions on the robot.

A new one is a class with `propose` and a line in `PROPOSERS`, or an entry point of another package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from adahi_ros.core.observation_buffer import ObservationBuffer
from adahi_ros.core.plan import Plan
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.registry import Registry
from adahi_ros.core.signature import OBSERVATION, Observations
from adahi_ros.policies.committee import Committee
from adahi_ros.policies.corrector.corrector import Corrector
from adahi_ros.policies.corrector.corrector_features import PlanView
from adahi_ros.policies.interface import Actor, Policy, Sampling
from adahi_ros.proposers.committee import CommitteeProposer
from adahi_ros.proposers.kalman import KalmanProposer, RectifiedProposer
from adahi_ros.proposers.retrieval import MixtureProposer, RetrievalProposer


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


class Proposer(Protocol):
    """Proposes actions on the robot.

    Attributes:
        needs_plan: where a robot has no plan, it has nothing to say; the target is then asked.

    It may have `told(requested_at, verdict, rows)`: that is called with what is sound of a reply, the step
    that asked for it, and the robots (M,) that it is for, by index.
    """

    needs_plan: bool

    def propose(self, context: ProposerContext) -> Proposal | None:
        """Propose actions from the present step on, sound or not; None goes on by the plan as it is."""


class DraftProposer:
    """Asks a policy anew at every step.

    Args:
        policy: the draft.
    """

    needs_plan = False

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`."""
        sampling = Sampling(context.temperature, sendable=True)
        return self._policy.propose(context.observations, context.draws, sampling)


def draft_proposer(policy: Policy) -> Proposer:
    """Return who asks a policy anew at every step, and learns where it is several."""
    return CommitteeProposer(policy) if isinstance(policy, Committee) else DraftProposer(policy)


class PlanProposer:
    """Goes on by the plan that the target made, blindly.

    Args:
        actor: whose signature the robot has.
    """

    needs_plan = True

    def __init__(self, actor: Actor) -> None:
        pass

    def propose(self, context: ProposerContext) -> None:
        """See `Proposer`."""
        return


class CorrectorProposer:
    """Goes on by the plan, and corrects its present action by what has happened since it was asked for.

    Args:
        corrector: what corrects.
    """

    needs_plan = True

    def __init__(self, corrector: Corrector) -> None:
        self._corrector = corrector

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`; one action; none where there is no plan."""
        signature = self._corrector.signature
        goal = signature.condition(context.observations)
        view = plan_view(context.memory, context.plan, context.step, goal, signature.horizon)
        actions, expected_error = self._corrector.correct(view)
        unplanned = context.plan.left(context.step) == 0
        actions[unplanned], expected_error[unplanned] = np.nan, np.inf
        return Proposal(actions[:, None], expected_error=expected_error)


class DraftChecksPlanProposer:
    """Goes on by the plan, and says how far it is from what a draft policy would do now.

    After SV-VLA (arXiv 2604.02965), whose light verifier has the large policy asked where the two disagree:
    here by the gate `expected_error`.

    Args:
        policy: the draft; what it proposes is never executed.
    """

    needs_plan = True

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`; one action, none where there is no plan; the distance is a root mean square."""
        planned = context.plan.at(context.step)
        sampling = Sampling(context.temperature)
        drafted = self._policy.propose(context.observations, context.draws, sampling).actions[:, 0]
        distance = np.sqrt((((drafted - planned) / self._policy.action_scale) ** 2).mean(axis=1))
        return Proposal(planned[:, None], expected_error=np.where(np.isnan(distance), np.inf, distance))


def plan_view(memory: ObservationBuffer, plan: Plan, step: int, goal: np.ndarray, horizon: int) -> PlanView:
    """Return what a corrector reads of a plan; anything of a robot that has none.

    Args:
        memory: what was observed, the present step included.
        plan: what lies ahead.
        step: of the episode, from 0.
        goal: (B, G) that the robots are told.
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


PROPOSERS: Registry[Callable[[Any], Proposer]] = Registry(
    "adahi_ros.proposers",
    {
        "draft": draft_proposer,
        "plan": PlanProposer,
        "corrector": CorrectorProposer,
        "draft_checks_plan": DraftChecksPlanProposer,
        "retrieval": RetrievalProposer,
        "mixture": MixtureProposer,
        "kalman": KalmanProposer,
        "rectified": RectifiedProposer,
    },
)
"""Made of a draft policy, or of another actor that they need: a corrector, an index, a draft and an index."""

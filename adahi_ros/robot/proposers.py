"""Who proposes actions on the robot.

A new one is a class with `propose` and a line in `PROPOSERS`, or an entry point of another package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from adahi_ros.policy.interface import Policy, Sampling
from adahi_ros.policy.proposal import Proposal
from adahi_ros.policy.signature import Observations
from adahi_ros.registry import Registry
from adahi_ros.robot.plan import Plan


@dataclass(frozen=True)
class ProposerContext:
    """What B robots know when they propose.

    Attributes:
        step: of the episode, from 0.
        observations: as the policy reads them.
        plan: what lies ahead.
        draws: (B, policy.draws) uniform in [0, 1).
        temperature: of the draft's distributions.
    """

    step: int
    observations: Observations
    plan: Plan
    draws: np.ndarray
    temperature: float


class Proposer(Protocol):
    """Proposes actions on the robot."""

    def propose(self, context: ProposerContext) -> Proposal | None:
        """Propose actions from the present step on, sound or not; None leaves the plan as it is."""


class DraftProposer:
    """Asks a policy anew at every step.

    Args:
        policy: the draft.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`."""
        sampling = Sampling(context.temperature, sendable=True)
        return self._policy.propose(context.observations, context.draws, sampling)


class PlanProposer:
    """Goes on by the plan that the target made; the policy says no more than what is observed.

    Args:
        policy: whose signature the robot has.
    """

    def __init__(self, policy: Policy) -> None:
        pass

    def propose(self, context: ProposerContext) -> None:
        """See `Proposer`."""
        return


PROPOSERS: Registry[Callable[[Policy], Proposer]] = Registry(
    "adahi_ros.proposers", {"draft": DraftProposer, "plan": PlanProposer}
)

# SPDX-License-Identifier: Apache-2.0
"""A proposer that executes the target's plan."""

from __future__ import annotations

from adahi_ros.policies.interface import Actor
from adahi_ros.proposers.interface import Proposer, ProposerContext


class PlanProposer(Proposer):
    """Executes the target's plan unchanged.

    Args:
        policy: the robot's, for its signature.
    """

    needs_policy = False
    needs_plan = True

    def __init__(self, policy: Actor) -> None:
        pass

    def propose(self, context: ProposerContext) -> None:
        """See `Proposer`."""
        return

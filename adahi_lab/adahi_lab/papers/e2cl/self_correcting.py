# SPDX-License-Identifier: Apache-2.0
"""Plans, foresees feedback, and corrects the plan before it acts: E2CL (arXiv 2409.03256)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from adahi_lab.papers.e2cl.agent import load_agent, seen_in
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.registry import argument
from adahi_ros.policies.interface import Policy
from adahi_ros.proposers.interface import Proposer, ProposerContext

PLAN, CORRECTION = "plan", "correction"


@dataclass(eq=False)
class SelfCorrectingProposer(Proposer):
    """Acts by an agent of E2CL, which corrects its plan where it foresees an error.

    It sees what the policy of `checkpoint` sees. The expected error is the probability that the agent calls
    its own action an error.

    Raises:
        ValueError: no file is given.
        CheckpointError: it cannot be read, or is for a draft that sees or does something else.
    """

    policy: Policy
    file: str = argument("", "Weights written by `adahi train feedback`", optional=True)
    rounds: int = argument(1, "Most corrections of an action; 0 executes the plan", 0, 100)
    otherwise: str = argument(PLAN, "Executed if errors are foreseen to the last", choices=(PLAN, CORRECTION))

    def __post_init__(self) -> None:
        if not self.file:
            raise ValueError("file: '', must be the weights of `adahi train feedback`")
        self._agent = load_agent(Path(self.file).expanduser(), self.policy.signature)

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`."""
        actions, error = self._agent.act(seen_in(context.observations), self.rounds, self.otherwise == PLAN)
        return Proposal((actions * self._agent.action_scale).astype("float32")[:, None], expected_error=error)

"""A gate and a proposer of one's own, for `adahi evaluate TASK --method FILE.py:CLASS`."""

from __future__ import annotations

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.gates.interface import GateContext
from adahi_ros.policies.interface import Actor
from adahi_ros.proposers.interface import ProposerContext


class Moved:
    """Asks where what is observed has moved far since the plan was asked for."""

    proposer = "plan"  # of PROPOSERS; "draft" unless told
    threshold = 0.04  # asks above it; searched for the calibration's rate unless told

    def score(self, context: GateContext) -> np.ndarray:
        now = context.observed["observation"]  # (B, O), of B robots side by side
        if context.begins:  # an episode: what was kept is of another
            self._then = self._last = now
        self._then = np.where(context.age[:, None] == 1, self._last, self._then)
        self._last = now
        return np.sqrt(np.square(now - self._then).mean(axis=1))  # (B,)


class Fading:
    """Goes on by the target's plan, the slower the older it is; asks for a new one every eight steps."""

    needs_plan = True  # else it drafts, and is made of the draft policy
    gate = "age"  # of GATES; "always" unless told
    threshold = 7.0

    def __init__(self, actor: Actor) -> None:
        self._halves_every = 16  # steps

    def propose(self, context: ProposerContext) -> Proposal:
        planned = context.plan.at(context.step)  # (B, A); NaN where there is no plan yet
        age = context.plan.age(context.step)[:, None]
        share = np.where(np.isfinite(age), 0.5 ** (age / self._halves_every), 1.0)
        return Proposal((share * planned)[:, None].astype(np.float32))  # (B, 1, A)

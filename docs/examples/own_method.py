"""A gate and a proposer of your own, for `adahi evaluate TASK --method FILE.py:CLASS`."""

from __future__ import annotations

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.gates.interface import GateContext
from adahi_ros.policies.interface import Actor
from adahi_ros.proposers.interface import ProposerContext


class Moved:
    """Sends a request where the observation has moved far since the plan was requested."""

    proposer = "plan"  # of PROPOSERS; "draft" by default
    threshold = 0.04  # above it, send a request; by default searched for the rate of the calibration

    def score(self, context: GateContext) -> np.ndarray:
        now = context.observed["observation"]  # (B, O), of B robots side by side
        if context.begins:  # a new episode
            self._then = self._last = now
        self._then = np.where(context.age[:, None] == 1, self._last, self._then)
        self._last = now
        return np.sqrt(np.square(now - self._then).mean(axis=1))  # (B,)


class Fading:
    """Executes the target's plan, slower as it gets older; requests a new one every eight steps."""

    needs_plan = True  # by default it drafts, and is made from the draft policy
    gate = "age"  # of GATES; "always" by default
    threshold = 7.0

    def __init__(self, actor: Actor) -> None:
        self._halves_every = 16  # steps

    def propose(self, context: ProposerContext) -> Proposal:
        planned = context.plan.at(context.step)  # (B, A); NaN where there is no plan yet
        age = context.plan.age(context.step)[:, None]
        share = np.where(np.isfinite(age), 0.5 ** (age / self._halves_every), 1.0)
        return Proposal((share * planned)[:, None].astype(np.float32))  # (B, 1, A)

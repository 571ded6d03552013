# SPDX-License-Identifier: Apache-2.0
"""Compensated: near tokens are kept, and a robot's own prediction completes an action after a refusal.

KERV (Zheng et al., arXiv 2603.01581) by its released code: the target verifies every draft. A token is kept
within some bins of the target's likeliest one. After a refusal the rest of the action is either the target's,
by another pass, or at some steps a Kalman filter's, without one. The robot has the filter and the threshold,
see `CompensatedProposer`: it knows the step, and what was executed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_lab.papers.tokens.action_tokens import REACH, ActionJudge, ActionRule
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import Proposal

COMPLETION = 2
"""Row of a draft's actions, after that of `REACH`: the filter's prediction."""
OWN = 1
"""Row of a reply's actions, after the one to execute: see `CompensatedAction.own`."""


@dataclass(frozen=True)
class CompensatedAction:
    """The resulting actions of M robots.

    Attributes:
        actions: (M, A) float32.
        own: (M, A) float32, the same with the target's own tokens instead of the kept ones.
        completed: (M, A) bool, entries that the filter predicted.
        judge: how each of the others was decided.
    """

    actions: np.ndarray
    own: np.ndarray
    completed: np.ndarray
    judge: ActionJudge


class Compensated(ActionRule):
    """KERV: keeps tokens near the target's; a robot's prediction replaces a second pass."""

    def verify(self, draft: Proposal, target: Proposal, draws: np.ndarray) -> Verdict:
        """See `Acceptance`; nothing is drawn. The verdict is of one action."""
        made = self.decide(draft, target)
        verdict = made.judge.verdict(made.actions)
        verdict.actions[:, OWN:] = made.own[:, None]
        return verdict

    def decide(self, draft: Proposal, target: Proposal) -> CompensatedAction:
        """Return the actions to execute, and which of their entries were not verified."""
        judge = ActionJudge(draft, target)
        robots, size = judge.tokens.shape
        rows = draft.actions
        # Without a threshold only the target's own tokens are kept.
        reach = np.abs(rows[:, REACH] - rows[:, 0]) if rows.shape[1] > REACH else np.zeros((robots, size))
        completed = np.zeros((robots, size), dtype=bool)
        while True:
            refused = judge.test(judge.near(reach))
            if rows.shape[1] > COMPLETION:
                completed |= refused[:, None] & (np.arange(size) >= judge.position[:, None] - 1)
                judge.position = np.where(refused, size, judge.position)
            if judge.done:
                break
            judge.read()
        actions, own = judge.action_of(judge.tokens), judge.action_of(judge.likeliest)
        if completed.any():
            actions, own = (np.where(completed, rows[:, COMPLETION], each) for each in (actions, own))
        return CompensatedAction(actions, own, completed, judge)

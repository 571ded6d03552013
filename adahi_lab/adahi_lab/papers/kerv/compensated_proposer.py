# SPDX-License-Identifier: Apache-2.0
"""Drafts one action by tokens at every step, for KERV's rule `compensated`.

KERV (Zheng et al., arXiv 2603.01581). Its filter has a gain of 0.999, so it predicts nearly the last action.
As its text says, the threshold follows how far kept tokens were off the target's own; in its released code
it falls by the step. In a completed action that code executes accepted tokens one entry too early, and
rounds predictions down: neither is repeated here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_lab.papers.kerv.compensated_rule import OWN
from adahi_lab.papers.tokens.action_draft import ActionDrafter
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.registry import argument
from adahi_ros.policies.interface import Policy
from adahi_ros.proposers.interface import Proposer, ProposerContext

PROCESS_VARIANCE, MEASUREMENT_VARIANCE, FIRST_VARIANCE = 1.0, 1e-3, 10.0  # in bins
SHAPE, LEAST = 3.0, 1e-30
"""Of the threshold's fall: exp(-(step / tau) ** SHAPE), which is LEAST at the end of the episode."""


class EntryFilters:
    """One Kalman filter for each entry of the actions of B robots: it expects no change.

    Attributes:
        state: (B, A), the prediction; NaN before the first action.
    """

    def __init__(self, robots: int, size: int) -> None:
        self.state = np.full((robots, size), np.nan)
        self._variance = np.full((robots, 1), FIRST_VARIANCE)

    def update(self, measured: np.ndarray) -> None:
        """Take in executed actions (B, A), in bins; NaN for robots without one."""
        known = ~np.isnan(measured).any(axis=1, keepdims=True)
        before = np.where(np.isnan(self.state), measured, self.state)
        variance = self._variance + PROCESS_VARIANCE
        gain = variance / (variance + MEASUREMENT_VARIANCE)
        self.state = np.where(known, before + gain * (measured - before), self.state)
        self._variance = np.where(known, (1.0 - gain) * variance, self._variance)


def threshold_at(step: int, steps: int, first: float, last: float) -> float:
    """Return the threshold at a step of an episode of so many steps; it falls from `first` to `last`."""
    tau = steps / (-np.log(LEAST)) ** (1.0 / SHAPE)
    return float(last + (first - last) * np.exp(-((step / tau) ** SHAPE)))


@dataclass(eq=False)
class CompensatedProposer(Proposer):
    """KERV: drafts tokens; sends a threshold and, at some steps, a prediction.

    Its rule is `compensated`, its gate `always`: as in KERV, the target verifies every draft.

    Raises:
        ValueError: the draft does not emit a token for each entry of an action, or `last` is above `first`.
    """

    policy: Policy
    first: float = argument(15.0, "Bins that a token may be off, at first", 0.0, 1024.0)
    last: float = argument(5.0, "Bins that a token may be off, at least", 0.0, 1024.0)
    steps: int = argument(240, "Control steps of an episode", 1, 1_000_000)
    limit: float = argument(8.0, "Bins an action is off before that falls; 0: by the step", 0.0, 1e6)
    every: int = argument(4, "Steps between predictions; 0: none", 0, 1_000_000)

    def __post_init__(self) -> None:
        if self.last > self.first:
            raise ValueError(f"last: {self.last}, must be at most first, {self.first}")
        self._drafter = ActionDrafter(self.policy, "compensated")
        self._filters, self._within = EntryFilters(0, 0), np.zeros(0)

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`; the drafted action, and what the rule reads: see `REACH` and `COMPLETION`."""
        drafter = self._drafter
        codes, drafted = drafter.draft(context.observations)
        if context.begins or len(self._filters.state) != len(codes):
            self._filters, self._within = EntryFilters(*codes.shape), np.full(len(codes), self.first)
        if context.executed is not None:
            self._filters.update(drafter.bins(context.executed))
        if not self.limit:
            self._within[:] = np.floor(threshold_at(context.step, self.steps, self.first, self.last))
        reach = (self._within[:, None] + 0.5) * drafter.width  # half a bin more, for rounding
        rows = [drafted, drafted + reach]
        state = self._filters.state
        if self.every and (context.step + 1) % self.every == 0 and np.isfinite(state).all():
            rows.append(drafter.action_of(drafter.clipped(state)))
        return drafter.proposal(np.stack(rows, axis=1), codes)

    def observe_reply(self, requested_at: int, verdict: Verdict, rows: np.ndarray) -> None:
        """See `Proposer`; by how far kept tokens were off, the threshold falls or rises by a bin."""
        if self.limit:
            off = np.abs(verdict.actions[:, 0] - verdict.actions[:, OWN]) / self._drafter.width
            step = np.where(off.sum(axis=1) > self.limit, -1.0, 1.0)
            self._within[rows] = np.clip(self._within[rows] + step, self.last, self.first)

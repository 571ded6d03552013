# SPDX-License-Identifier: Apache-2.0
"""Drafts, and corrects a draft itself where it expects the target to refuse it: E2CL (arXiv 2409.03256)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from adahi_lab.papers.e2cl.self_correction import load_self_correction
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.registry import argument
from adahi_ros.core.signature import GOAL, OBSERVATION
from adahi_ros.policies.interface import Policy, Sampling
from adahi_ros.proposers.interface import Proposer, ProposerContext


@dataclass(eq=False)
class SelfCorrectingProposer(Proposer):
    """The policy of `checkpoint`; a draft that the target would probably refuse is corrected first.

    By default a correction is executed whatever its own probability of refusal. In E2CL's code it is judged
    again: set `judged_above` to `above`.
    The expected error is the draft's, so the gate `expected_error` requests where that is high.

    Raises:
        ValueError: no file is given, or it is for another draft.
        CheckpointError: it cannot be read.
    """

    policy: Policy
    file: str = argument("", "Weights written by `adahi train feedback`", optional=True)
    above: float = argument(0.5, "Probability of refusal above which a draft is corrected", 0.0, 1.0)
    judged_above: float = argument(
        1.0, "Probability of a correction's own refusal above which the draft stays", 0.0, 1.0
    )

    def __post_init__(self) -> None:
        if not self.file:
            raise ValueError("file: '', must be the weights of `adahi train feedback`")
        self._network = load_self_correction(Path(self.file).expanduser())
        self._network.check(self.policy.signature)

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`."""
        seen = context.observations
        drafted = self.policy.propose(seen, context.draws, Sampling(context.temperature, sendable=True))
        scale, actions = self.policy.action_scale, drafted.actions.copy()
        goals = seen.conditions.get(GOAL, np.zeros((len(actions), 0), np.float32))
        windows = seen.features[OBSERVATION]
        refused, corrected = self._network.judge(windows, goals, actions[:, 0] / scale)
        rows = refused > self.above
        if self.judged_above < 1.0:
            rows &= self._network.judge(windows, goals, corrected)[0] <= self.judged_above
        actions[rows, 0] = (corrected * scale)[rows]
        return replace(drafted, actions=actions, expected_error=refused)

# SPDX-License-Identifier: Apache-2.0
"""Blocks: a retrieved action is kept by its position, rotation and gripper, a drafted one token by token.

HeiSD (arXiv 2603.17573) by its released code. A block is kept if all of its tokens together are less than 45
bins off the target's likeliest ones, and each less than 25. From the first block that is not kept on, the
target decodes. The sign of the distance that a robot sends says which of both it wants: `ToolPathProposer`.
"""

from __future__ import annotations

import itertools

import numpy as np

from adahi_lab.papers.tokens.action_tokens import REACH, ActionJudge, ActionRule
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import Proposal

TOGETHER, EACH = 45, 25
"""Bins that the tokens of a block, and each of them, must stay below."""


class Blocks(ActionRule):
    """HeiSD: keeps retrieved actions by blocks, drafted ones by tokens."""

    def verify(self, draft: Proposal, target: Proposal, draws: np.ndarray) -> Verdict:
        """See `Acceptance`; nothing is drawn. The verdict is of one action."""
        judge = self.decide(draft, target)
        return judge.verdict(judge.action_of(judge.tokens))

    def decide(self, draft: Proposal, target: Proposal) -> ActionJudge:
        """Return the judge, with the tokens to execute."""
        judge, rows = ActionJudge(draft, target), draft.actions
        reach = np.zeros(judge.tokens.shape)
        if rows.shape[1] > REACH:
            reach = rows[:, REACH] - rows[:, 0]
        retrieved = (reach < 0.0).all(axis=1)
        while True:
            kept = judge.near(np.maximum(reach, 0.0))
            kept[retrieved] = near_by_blocks(judge.tokens, judge.likeliest)[retrieved, : kept.shape[1]]
            refused = judge.test(kept)
            judge.end = np.where(retrieved & refused, judge.position, judge.end)
            if judge.done:
                return judge
            judge.read()


def blocks_of(size: int) -> tuple[slice, ...]:
    """Return the blocks of an action of so many entries: position, rotation if any, and gripper."""
    ends = sorted({0, min(3, size), max(3, size - 1) if size > 3 else size, size})
    return tuple(slice(first, end) for first, end in itertools.pairwise(ends))


def near_by_blocks(tokens: np.ndarray, likeliest: np.ndarray) -> np.ndarray:
    """Return which tokens (M, A) belong to a block that is near the target's likeliest tokens (M, A)."""
    off, near = np.abs(tokens - likeliest), np.zeros(tokens.shape, dtype=bool)
    for block in blocks_of(tokens.shape[1]):
        of_block = off[:, block]
        near[:, block] = ((of_block.sum(axis=1) < TOGETHER) & (of_block.max(axis=1) < EACH))[:, None]
    return near

# SPDX-License-Identifier: Apache-2.0
"""Blocks: a retrieved action is kept by its position, rotation and gripper, a drafted one token by token.

HeiSD (arXiv 2603.17573) by its released code. A block is kept if all of its tokens together are less than 45
bins off the target's likeliest ones, and each less than 25. Of several candidates, one with the most kept
blocks counts. From its first block that is not kept on, the target decodes. The sign of the distance that a
robot sends says whether its action was retrieved: `ToolPathProposer`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from adahi_lab.papers.tokens.action_tokens import REACH, ActionJudge, ActionRule
from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import Proposal

TOGETHER, EACH = 45, 25
"""Bins that the tokens of a block, and each of them, must stay below."""
OTHERS = 2
"""First row of a draft's actions, after that of `REACH`, with another candidate."""


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
        near = near_by_blocks(judge.tokens, judge.likeliest).all(axis=1)
        which = np.flatnonzero(retrieved & ~near)
        if rows.shape[1] > OTHERS and which.size:
            choose(judge, rows[which, OTHERS:], which)
        while True:
            kept = judge.near(np.maximum(reach, 0.0))
            kept[retrieved] = near_by_blocks(judge.tokens, judge.likeliest)[retrieved, : kept.shape[1]]
            refused = judge.test(kept)
            judge.end = np.where(retrieved & refused, judge.position, judge.end)
            if judge.done:
                return judge
            judge.read()


def choose(judge: ActionJudge, others: np.ndarray, which: np.ndarray) -> None:
    """Let the target read other candidates (R, C, A) of robots (R,) in one pass, and take the best."""
    robots, size = judge.tokens.shape
    values = judge.action_of(np.repeat(np.arange(judge.q.shape[2])[:, None], size, axis=1))
    others = np.abs(others[:, :, None] - values).argmin(axis=2)
    every = np.concatenate([judge.tokens[which, None], others], axis=1)
    count, tokens = every.shape[1], every.reshape(-1, size)
    of_robot, before = np.repeat(which, count), judge.target
    assert before.resumed is not None
    found = before.resumed(tokens[:, :-1], 1, of_robot)
    q = np.concatenate([judge.q[of_robot, :1], found.probabilities], axis=1)
    kept = np.logical_and.accumulate(near_by_blocks(tokens, q.argmax(axis=2)), axis=1).sum(axis=1)
    best = count * np.arange(len(which)) + kept.reshape(-1, count).argmax(axis=1)
    judge.tokens[which], judge.q[which] = tokens[best], q[best]
    judge.passes[which] += 1
    part, rows = np.zeros(robots, dtype=np.int64), np.arange(robots)
    part[which], rows[which] = 1, best
    judge.target = joined((before, replace(found, probabilities=q)), part, rows)


def joined(parts: Sequence[TokenDistribution], part: np.ndarray, at: np.ndarray) -> TokenDistribution:
    """Return the distributions of robots (M,), each at a row of one of the parts."""

    def resumed(tokens: np.ndarray, first: int, rows: np.ndarray) -> TokenDistribution:
        made, places = [], np.zeros(len(rows), dtype=np.int64)
        for number, each in enumerate(parts):
            mine = np.flatnonzero(part[rows] == number)
            places[mine] = np.arange(len(mine))
            assert each.resumed is not None
            made.append(each.resumed(tokens[mine], first, at[rows[mine]]) if mine.size else each)
        return joined(made, part[rows], places)

    probabilities = np.stack([parts[of].probabilities[row] for of, row in zip(part, at, strict=True)])
    return replace(parts[0], probabilities=probabilities, resumed=resumed)


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

"""HeiSD's rule: retrieved actions are kept by blocks, and the target decodes from the first bad block on."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.papers.heisd.blocks import EACH, Blocks, blocks_of, near_by_blocks
from adahi_lab.papers.tokens.action_tokens import ActionJudge
from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_ros.core.proposal import CodeDistribution, Proposal, counted

A, K, BEST = 7, 64, 30


def read(codes: np.ndarray, first: int = 0) -> TokenDistribution:
    """A target that always wants token `BEST`, by one more for each entry that it did not choose itself."""
    last = min(codes.shape[1] + 1, A)
    q = np.full((len(codes), last - first, K), 0.5 / K, dtype=np.float32)
    for index in range(first, last):
        foreign = (codes[:, :index] % 2 == 1).sum(axis=1)
        q[np.arange(len(codes)), index - first, BEST + 2 * foreign] += 0.5

    def resumed(tokens: np.ndarray, start: int, rows: np.ndarray) -> TokenDistribution:
        return read(tokens, start)

    return TokenDistribution(q, codes, actions_of, resumed=resumed)


def actions_of(codes: np.ndarray) -> np.ndarray:
    return codes[:, None].astype(np.float32)


def decided(codes: list[list[int]], distance: float) -> ActionJudge:
    drafted = np.array(codes)
    actions = np.stack([drafted, drafted + distance], axis=1).astype(np.float32)
    p = np.full((*drafted.shape, K), 1 / K)
    draft = Proposal(actions, CodeDistribution(p, drafted, actions_of, counted(p)))
    return Blocks().decide(draft, Proposal(np.zeros((len(drafted), 1, A), np.float32), read(drafted)))


@pytest.mark.parametrize(("size", "sizes"), [(7, [3, 3, 1]), (8, [3, 4, 1]), (4, [3, 1]), (3, [3]), (2, [2])])
def test_blocks_are_position_rotation_and_gripper(size: int, sizes: list[int]) -> None:
    assert [block.stop - block.start for block in blocks_of(size)] == sizes


def test_a_block_is_near_by_its_sum_and_by_each_token() -> None:
    off = [[24, 20, 0, 0, 0, 0, 24], [24, 21, 0, 0, 0, 0, 25], [25, 0, 0, 24, 0, 0, 0]]
    near = near_by_blocks(np.array(off), np.zeros((3, A), dtype=np.int64))
    assert near[:, [0, 3, 6]].tolist() == [[True, True, True], [False, True, False], [False, True, True]]
    assert (near[:, 0] == near[:, 2]).all()


def test_near_blocks_are_kept_in_one_pass() -> None:
    codes = [[BEST + 10] * A]
    judge = decided(codes, -0.5)
    assert judge.tokens.tolist() == codes
    assert judge.passes.tolist() == [1]


def test_from_the_first_bad_block_on_the_target_decodes() -> None:
    bad = [BEST, BEST, BEST, BEST, BEST + EACH + 1, BEST, BEST + 2]
    judge = decided([bad], -0.5)
    assert judge.tokens.tolist() == [[BEST] * A]
    assert judge.accepted[0].tolist() == [True] * 3 + [False] * 4
    assert judge.passes.tolist() == [1 + 3]  # the first pass has the fourth token, too


def test_drafted_tokens_are_kept_one_by_one() -> None:
    codes = [[BEST + 4, BEST + 20, *[BEST] * 5]]
    judge = decided(codes, 9.5)
    assert judge.tokens.tolist() == [[BEST + 4, *[BEST] * 6]]
    assert judge.accepted[0].tolist() == [True, False, *[True] * 5]


def test_robots_in_both_modes_are_judged_side_by_side() -> None:
    bad = [BEST, BEST, BEST, BEST, BEST + EACH + 1, BEST, BEST + 2]
    drafted = np.array([bad, bad])
    actions = np.stack([drafted, drafted + np.array([[-0.5], [9.5]])], axis=1).astype(np.float32)
    p = np.full((2, A, K), 1 / K)
    draft = Proposal(actions, CodeDistribution(p, drafted, actions_of, counted(p)))
    judge = Blocks().decide(draft, Proposal(np.zeros((2, 1, A), np.float32), read(drafted)))
    for row, distance in enumerate((-0.5, 9.5)):
        alone = decided([bad], distance)
        np.testing.assert_array_equal(judge.tokens[row], alone.tokens[0])
        assert judge.passes[row] == alone.passes[0]

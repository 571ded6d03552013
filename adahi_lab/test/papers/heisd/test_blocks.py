"""HeiSD's rule: retrieved actions are kept by blocks, and the target decodes from the first bad block on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adahi_lab.papers.heisd.blocks import EACH, Blocks, near_by_blocks
from adahi_lab.papers.tokens.action_tokens import ActionJudge
from adahi_lab.papers.tokens.observed_chunks import load_token_policy
from adahi_lab.papers.tokens.token_codes import BinCodec
from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_ros.core.assets import asset
from adahi_ros.core.proposal import CodeDistribution, Proposal, counted

A, K, BEST = 7, 64, 30
FOLDER = asset("checkpoints/metaworld/tokens")


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


def decided(codes: list[list[int]], distance: float, others: Sequence[list[list[int]]] = ()) -> ActionJudge:
    drafted = np.array(codes)
    actions = np.stack([drafted, drafted + distance, *np.array(others)], axis=1).astype(np.float32)
    p = np.full((*drafted.shape, K), 1 / K)
    draft = Proposal(actions, CodeDistribution(p, drafted, actions_of, counted(p)))
    return Blocks().decide(draft, Proposal(np.zeros((len(drafted), 1, A), np.float32), read(drafted)))


def test_a_block_is_near_by_its_sum_and_by_each_token() -> None:
    off = [[24, 20, 0, 0, 0, 0, 24], [24, 21, 0, 0, 0, 0, 25], [25, 0, 0, 24, 0, 0, 0]]
    near = near_by_blocks(np.array(off), np.zeros((3, A), dtype=np.int64))
    assert near[:, [0, 3, 6]].tolist() == [[True, True, True], [False, True, False], [False, True, True]]
    assert (near[:, 0] == near[:, 2]).all()


def test_from_the_first_bad_block_on_the_target_decodes() -> None:
    bad = [BEST, BEST, BEST, BEST, BEST + EACH + 1, BEST, BEST + 2]
    judge = decided([bad], -0.5)
    assert judge.tokens.tolist() == [[BEST] * A]
    assert judge.accepted[0].tolist() == [True] * 3 + [False] * 4
    assert judge.passes.tolist() == [1 + 3]  # the first pass has the fourth token, too


def test_of_several_candidates_one_with_the_most_kept_blocks_counts() -> None:
    far, rest = BEST + EACH + 1, [BEST] * 3
    first, second, third = [far, *[BEST] * 6], [*rest, *rest, far], [*rest, far, BEST, BEST, far]
    judge = decided([first], -0.5, [[third], [second], [second]])
    assert judge.tokens.tolist() == [[BEST] * A]
    assert judge.accepted[0].tolist() == [True] * 6 + [False]  # the second, and its last token is refused
    assert judge.passes.tolist() == [2]
    whole = decided([[BEST + 2] * A], -0.5, [[first]])
    assert whole.tokens.tolist() == [[BEST + 2] * A]
    assert whole.passes.tolist() == [1]  # the nearest is kept, so no other is read


def test_robots_of_a_batch_read_their_own_candidates() -> None:
    """Retrieved and drafted actions, by a network that continues its passes: together and alone."""
    target, rng, robots, entries = load_token_policy(FOLDER / "target"), np.random.default_rng(0), 12, 4
    assert isinstance(target.codec, BinCodec)
    shape = robots, target.signature.history, target.signature.observation_dim
    goals = rng.normal(size=(robots, target.signature.goal_dim)).astype(np.float32)
    seen = target.signature.observations(rng.normal(size=shape).astype(np.float32), goals)
    likeliest, far = target.likeliest(seen, entries).codes, rng.integers(-35, 36, (5, robots, entries))
    codes = np.clip(likeliest + far, 0, 255)
    actions = target.codec.values[codes, np.arange(entries)]
    reach = np.where(np.arange(robots) % 3 > 0, -1e-3, 0.05)[:, None]

    def judged(rows: np.ndarray) -> ActionJudge:
        first, rest = actions[0, rows], actions[1:, rows]
        p = np.eye(256, dtype=np.float32)[codes[0, rows]]
        drawn = CodeDistribution(p, codes[0, rows], target.codec.decode, counted(p))
        sent = np.stack([first, first + reach[rows], *rest], axis=1)
        draft = Proposal(sent.astype(np.float32), drawn)
        return Blocks().decide(draft, target.judge(seen.rows(rows), codes[0, rows]))

    together = judged(np.arange(robots))
    assert len(set(together.passes.tolist())) > 2
    for robot in range(robots):
        alone = judged(np.array([robot]))
        assert alone.tokens[0].tolist() == together.tokens[robot].tolist()
        assert alone.passes[0] == together.passes[robot]

"""KERV's rule: what is executed was verified by the target, or predicted by the filter after a refusal."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from adahi_lab.papers.kerv.compensated_rule import Compensated, CompensatedAction
from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_ros.acceptance.interface import Acceptance
from adahi_ros.core.proposal import CodeDistribution, Proposal, counted
from adahi_ros.core.signature import CodeSpace, Feature, Signature

A, T, K, M = 4, 2, 32, 400
WIDTH = 0.25  # action units per bin


@functools.cache
def likeliest_after(before: tuple[int, ...]) -> int:
    """The target's likeliest token after others, without structure."""
    return int(np.random.default_rng([len(before), *before]).integers(K))


def read(codes: np.ndarray, first: int = 0) -> TokenDistribution:
    """The target's distributions after known tokens: half of the probability is the likeliest one's."""
    last = min(codes.shape[1] + 1, A * T)
    q = np.full((len(codes), last - first, K), 0.5 / K, dtype=np.float32)
    for row, tokens in enumerate(codes.tolist()):
        for index in range(first, last):
            q[row, index - first, likeliest_after(tuple(tokens[:index]))] += 0.5

    def resumed(tokens: np.ndarray, start: int, rows: np.ndarray) -> TokenDistribution:
        assert len(tokens) == len(rows)
        return read(tokens, start)

    return TokenDistribution(q, codes, actions_of, resumed=resumed)


def actions_of(codes: np.ndarray) -> np.ndarray:
    return (WIDTH * codes).reshape(len(codes), T, A).astype(np.float32)


def near(bins: int, rng: np.random.Generator) -> np.ndarray:
    """Drafts (M, A) of which each token is so far from the likeliest one after the drafted ones, at most."""
    codes = np.zeros((M, 0), dtype=np.int64)
    for _ in range(A):
        best = np.array([likeliest_after(tuple(row)) for row in codes.tolist()])
        new = np.clip(best + rng.integers(-bins, bins + 1, M), 0, K - 1)
        codes = np.concatenate([codes, new[:, None]], axis=1)
    return codes


def decided(codes: np.ndarray, within: int, predicted: np.ndarray | None) -> CompensatedAction:
    drafted = actions_of(np.pad(codes, ((0, 0), (0, A * (T - 1)))))[:, 0]
    rows = [drafted, drafted + (within + 0.5) * WIDTH]
    if predicted is not None:
        rows.append(predicted)
    p = np.full((M, A, K), 1 / K)
    draft = Proposal(
        np.stack(rows, axis=1).astype(np.float32), CodeDistribution(p, codes, actions_of, counted(p))
    )
    return Compensated().decide(draft, Proposal(np.zeros((M, T, A), np.float32), read(codes)))


@pytest.mark.parametrize("completes", [True, False])
def test_only_what_was_verified_or_predicted_is_executed(completes: bool) -> None:
    rng = np.random.default_rng(3)
    codes, within = near(6, rng), 3
    predicted = rng.normal(size=(M, A)).astype(np.float32) if completes else None
    made = decided(codes, within, predicted)
    kinds = {"kept": 0, "replaced": 0, "predicted": 0}
    for row in range(M):
        tokens: list[int] = []
        for entry in range(A):
            best = likeliest_after(tuple(tokens))
            kept = abs(codes[row, entry] - best) <= within
            if made.completed[row, entry]:
                assert completes
                assert not kept or made.completed[row, entry - 1]
                assert made.completed[row, entry:].all()
                assert predicted is not None
                np.testing.assert_array_equal(made.actions[row, entry:], predicted[row, entry:])
                kinds["predicted"] += 1
                break
            kinds["kept" if kept else "replaced"] += 1
            assert made.judge.accepted[row, entry] == kept
            tokens.append(int(codes[row, entry]) if kept else best)
            assert made.actions[row, entry] == np.float32(WIDTH * tokens[-1])
            assert made.own[row, entry] == np.float32(WIDTH * best)
    assert kinds["kept"] > M
    assert bool(kinds["predicted"]) == completes
    assert bool(kinds["replaced"]) != completes


def test_codes_that_are_no_tokens_of_entries_are_refused() -> None:
    rule: Acceptance = Compensated()
    signature = Signature(1, T, A, (Feature("observation", 3),), codes=CodeSpace("a", 5, K, sequential=True))
    expected = "codebooks: the target's are 5, must be 8, one for each entry of an action"
    assert rule.compatible(signature, signature) == expected


def test_a_target_that_emits_its_codes_at_once_is_refused() -> None:
    signature = Signature(1, T, A, (Feature("observation", 3),), codes=CodeSpace("a", A * T, K))
    with pytest.raises(ValueError, match="rule: needs a target that emits tokens one after another"):
        Compensated().check_target(signature, "")

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from scipy.stats import chi2

from adahi_lab.papers.tokens.token_sequence import (
    COMPLETIONS,
    JudgedTokens,
    RestByTarget,
    TokenDistribution,
    TokenJudge,
)
from adahi_ros.acceptance.speculative import Speculative
from adahi_ros.core.proposal import CodeDistribution, Proposal, sample
from adahi_ros.core.signature import CodeSpace, Feature, Signature

N, K, M = 4, 3, 20_000
ENDING = 9  # models from here on end a chunk by `END`
END = 1


@functools.cache
def following(model: int, before: tuple[int, ...]) -> np.ndarray:
    """The distribution (K,) of the token after others, of a model without structure."""
    if model >= ENDING and END in before:
        return np.eye(K, dtype=np.float32)[END]
    drawn = np.random.default_rng([model, len(before), *before]).random(K) ** 2 + 0.02
    probabilities: np.ndarray = (drawn / drawn.sum()).astype(np.float32)
    return probabilities


def read(model: int, codes: np.ndarray, first: int = 0) -> TokenDistribution:
    """The distributions of a model after known tokens, as a policy judges them."""
    last = min(codes.shape[1] + 1, N)
    given = [[following(model, tuple(row[:index])) for index in range(first, last)] for row in codes.tolist()]

    def resumed(tokens: np.ndarray, first: int, rows: np.ndarray) -> TokenDistribution:
        assert len(tokens) == len(rows)
        return read(model, tokens, first)

    end = END if model >= ENDING else None
    return TokenDistribution(np.array(given), codes, actions_of, resumed=resumed, end=end)


def actions_of(codes: np.ndarray) -> np.ndarray:
    return codes[:, :, None].astype(np.float32)


def drafted(model: int, length: int, robots: int, rng: np.random.Generator) -> CodeDistribution:
    codes, parts = np.zeros((robots, 0), dtype=np.int64), []
    for index in range(length):
        parts.append(np.array([following(model, tuple(row)) for row in codes.tolist()]))
        codes = np.concatenate([codes, sample(parts[index], rng.random(robots))[:, None]], axis=1)
    return CodeDistribution(np.stack(parts, axis=1), codes, actions_of)


def judged(draft: int, target: int, length: int, completion: str, robots: int = M) -> JudgedTokens:
    rng = np.random.default_rng(5)
    ours = drafted(draft, length, robots, rng)
    return TokenJudge(ours, read(target, ours.codes), rng.random((robots, N, 2))).complete(completion)


@pytest.mark.parametrize("completion", COMPLETIONS)
@pytest.mark.parametrize("length", [1, 3, N])
@pytest.mark.parametrize(("draft", "target"), [(1, 2), (ENDING, ENDING + 1)])
def test_chunks_are_distributed_as_the_targets_own(
    draft: int, target: int, length: int, completion: str
) -> None:
    codes = judged(draft, target, length, completion).codes
    found = np.bincount(codes @ K ** np.arange(N), minlength=K**N)
    chunks = list(itertools.product(range(K), repeat=N))
    probabilities = [np.prod([following(target, each[:i])[each[i]] for i in range(N)]) for each in chunks]
    expected = np.zeros(K**N)
    expected[np.array(chunks) @ K ** np.arange(N)] = M * np.array(probabilities)
    possible = expected > 0.0
    assert not found[~possible].any()
    off = ((found - expected) ** 2)[possible] / expected[possible]
    assert off.sum() < chi2.ppf(1 - 1e-4, possible.sum() - 1)


def test_the_test_would_notice_another_distribution() -> None:
    codes = judged(1, 2, N, "draft").codes
    found = np.bincount(codes[:, 0], minlength=K) / M
    assert np.abs(found - following(1, ())).max() > 0.05
    assert np.abs(found - following(2, ())).max() < 0.02


@pytest.mark.parametrize("completion", COMPLETIONS)
def test_behind_the_end_of_a_chunk_the_target_has_no_passes(completion: str) -> None:
    result = judged(ENDING, ENDING + 1, N, completion)
    ends = (result.codes == END).argmax(axis=1)
    ended = (result.codes == END).any(axis=1)
    assert (result.codes[ended & (ends < N - 1)][:, -1] == END).all()
    assert (result.passes[ended] <= ends[ended] + 1).all()
    assert result.passes[~ended].max() > 1


def test_each_refusal_costs_one_more_pass() -> None:
    result = judged(1, 2, N, "draft", 500)
    refusals = (~result.accepted).sum(axis=1)
    last = ~result.accepted[:, -1]
    np.testing.assert_array_equal(result.passes, 1 + refusals - last)
    assert 1 < result.passes.mean() < judged(1, 2, N, "target", 500).passes.mean()


def test_a_rule_may_keep_what_the_test_refuses() -> None:
    rng = np.random.default_rng(7)
    ours = drafted(1, N, 20, rng)
    judge = TokenJudge(ours, read(2, ours.codes), rng.random((20, N, 2)))
    judge.test(np.ones((20, N), dtype=bool))
    assert judge.done
    np.testing.assert_array_equal(judge.tokens, ours.codes)


def test_the_rule_speculative_judges_tokens() -> None:
    rng = np.random.default_rng(9)
    ours, draws = drafted(1, 3, 10, rng), rng.random((10, N, 2))
    draft, target = Proposal(np.zeros((10, 0, 1)), ours), Proposal(np.zeros((10, N, 1)), read(2, ours.codes))
    verdict = Speculative().verify(draft, target, draws)
    assert verdict.accepted.shape == (10, 3)
    assert verdict.actions.shape == (10, N, 1)


def test_the_rest_is_decoded_only_by_a_target_of_tokens() -> None:
    parallel = Signature(1, 1, 1, (Feature("observation", 1),), codes=CodeSpace("a", N, K))
    with pytest.raises(ValueError, match="needs a target that emits tokens one after another"):
        RestByTarget().check_target(parallel, "")

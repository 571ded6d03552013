from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from test.papers.conftest import CODEC, DRAFT, K, seen

from adahi_lab.papers.tokens.parallel_decoding import decode_in_parallel
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.files import read_json
from adahi_ros.core.proposal import UNITS, Proposal
from adahi_ros.core.written_files import save_json
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import JudgingPolicy, Sampling
from adahi_ros.policies.slowed import SlowedPolicy

N = CODEC.codebooks
BACKENDS = ("onnxruntime", "torch")


@pytest.fixture(params=BACKENDS)
def target(request: pytest.FixtureRequest, pair: Path) -> TokenPolicy:
    policy = load_policy(pair / "target", request.param)
    assert isinstance(policy, TokenPolicy)
    return policy


def draws(batch: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random((batch, N))


def drawn(proposal: Proposal) -> TokenDistribution:
    assert isinstance(proposal.distribution, TokenDistribution)
    return proposal.distribution


def test_backends_give_equal_chunks(pair: Path) -> None:
    one, other = (load_policy(pair / "target", name).propose(seen(4), draws(4)) for name in BACKENDS)
    np.testing.assert_array_equal(drawn(one).codes, drawn(other).codes)
    np.testing.assert_allclose(drawn(one).probabilities, drawn(other).probabilities, atol=1e-5)


@pytest.mark.parametrize("first", [1, 3, N - 1])
def test_other_tokens_are_read_after_the_kept_ones(target: TokenPolicy, first: int) -> None:
    codes = np.random.default_rng(3).integers(K, size=(3, N))
    judged, other = drawn(target.judge(seen(3), codes)), codes.copy()
    other[:, first - 1 :] = (other[:, first - 1 :] + 1) % K
    assert judged.resumed is not None
    rows = np.array([0, 2])
    resumed = judged.resumed(other[rows], first, rows)
    fresh = drawn(target.judge(seen(3), other)).probabilities[rows, first:]
    np.testing.assert_allclose(resumed.probabilities, fresh, atol=1e-5)


def test_a_chunk_takes_a_pass_per_token_and_a_judgement_one(target: TokenPolicy) -> None:
    seen_passes: list[tuple[int, int]] = []
    target.on_pass = lambda robots, positions: seen_passes.append((robots, positions))
    codes = drawn(target.propose(seen(2), draws(2))).codes
    assert seen_passes == [(2, 3), *[(2, 1)] * (N - 1)]
    seen_passes.clear()
    target.judge(seen(2), codes)
    assert seen_passes == [(2, 3 + N - 1)]


def test_a_slower_machine_judges_the_same_later(target: TokenPolicy) -> None:
    slept: list[float] = []
    slowed, codes = SlowedPolicy(target, 0.5, slept.append), np.zeros((2, N), dtype=np.int64)
    assert isinstance(slowed, JudgingPolicy)
    own, later = (drawn(policy.judge(seen(2), codes)) for policy in (target, slowed))
    np.testing.assert_array_equal(later.probabilities, own.probabilities)
    assert slept == [0.5]


def test_a_sent_draft_is_sampled_from_what_is_sent(pair: Path) -> None:
    draft = load_policy(pair / "draft", "onnxruntime")
    observations = seen(400, DRAFT).rows(np.zeros(400, dtype=np.int64))
    made = drawn(draft.propose(observations, draws(400), Sampling(sendable=True)))
    assert made.counts is not None
    assert (made.counts.sum(axis=-1, dtype=np.int64) == UNITS).all()
    assert (np.take_along_axis(made.counts, made.codes[..., None], axis=-1) > 0).all()
    assert (made.counts == 0).any()
    found = np.bincount(made.codes[:, 0], minlength=K) / 400
    expected = made.probabilities[0, 0]
    assert np.abs(found - expected).sum() < 0.2


def test_a_state_that_is_not_finite_gives_no_action(target: TokenPolicy) -> None:
    observations = seen(2)
    observations.features["observation"][1, 0, 0] = np.inf
    with np.errstate(invalid="ignore"):
        actions = target.propose(observations, draws(2)).actions
    assert np.isfinite(actions[0]).all()
    assert np.isnan(actions[1]).all()


def test_policies_of_another_tokenizer_are_refused(pair: Path, tmp_path: Path) -> None:
    shutil.copytree(pair, tmp_path / "copy")
    path = tmp_path / "copy" / "draft.json"
    save_json(path, {**read_json(path), "fingerprint": "0" * 16})
    with pytest.raises(CheckpointError, match=f"fingerprint: {'0' * 16}, must be {CODEC.fingerprint}"):
        load_policy(tmp_path / "copy" / "draft", "onnxruntime")


def test_parallel_decoding_ends_with_the_same_chunk(target: TokenPolicy) -> None:
    own = drawn(target.propose(seen(5), draws(5))).codes
    made = decode_in_parallel(target, seen(5), draws(5), np.zeros((5, N), dtype=np.int64))
    np.testing.assert_array_equal(made.codes, own)
    assert ((made.passes > 1) & (made.passes <= N + 1)).all()
    known = decode_in_parallel(target, seen(5), draws(5), own)
    np.testing.assert_array_equal(known.codes, own)
    assert (known.passes == 1).all()


@pytest.fixture
def ending(pair: Path, monkeypatch: pytest.MonkeyPatch) -> TokenPolicy:
    """A target whose chunks end with token 0."""
    policy = load_policy(pair / "target", "onnxruntime")
    assert isinstance(policy, TokenPolicy)
    monkeypatch.setattr(policy.codec, "end", 0)
    return policy


def test_no_pass_is_spent_on_chunks_that_are_over(ending: TokenPolicy) -> None:
    passes: list[int] = []
    ending.on_pass = lambda robots, positions: passes.append(positions)
    codes = drawn(ending.propose(seen(1), np.zeros((1, N)))).codes
    assert (codes == 0).all()
    assert len(passes) == 1

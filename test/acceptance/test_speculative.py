from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from adahi_lab.methods.oracles import rejection_probability
from adahi_ros.acceptance.speculative import speculative_sample
from adahi_ros.core.proposal import (
    UNITS,
    counted,
    probabilities_of,
    residual,
    sample,
    softmax,
)

JUST_BELOW_ONE = np.nextafter(1.0, 0.0)
UNIFORM_GRID = (np.arange(2000) + 0.5) / 2000

WEIGHT = st.one_of(st.just(0.0), st.floats(1e-30, 1e-6), st.floats(1e-3, 1.0), st.floats(0.5, 1.0))


@st.composite
def distributions(draw: st.DrawFn, count: int) -> list[np.ndarray]:
    """`count` distributions over the same K codes; one-hot and disjoint ones are among them."""
    size = draw(st.integers(2, 9))
    rows = []
    for _ in range(count):
        weights = np.array(draw(st.lists(WEIGHT, min_size=size, max_size=size)))
        assume(weights.sum() > 1e-3)
        rows.append((weights / weights.sum()).astype(np.float32))
    return rows


def exact(p: np.ndarray) -> np.ndarray:
    """A float32 distribution in float64, summing to one again."""
    return p.astype(np.float64) / p.sum(dtype=np.float64)


def drafted(p: np.ndarray, draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes (draws, 1) from p, not drawn by the code under test, and uniforms (draws, 1, 2)."""
    generator = np.random.default_rng(seed)
    return generator.choice(len(p), size=(draws, 1), p=exact(p)), generator.random((draws, 1, 2))


def verified(p: np.ndarray, q: np.ndarray, draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    codes, uniforms = drafted(p, draws, seed)
    rows = (draws, 1, len(p))
    out, accepted = speculative_sample(np.broadcast_to(p, rows), np.broadcast_to(q, rows), codes, uniforms)
    return out[:, 0], accepted[:, 0]


def assert_distributed_as(codes: np.ndarray, q: np.ndarray) -> None:
    counts = np.bincount(codes, minlength=len(q))
    assert not counts[q == 0].any()
    expected = exact(q) * len(codes)
    common = expected >= 5
    observed = np.append(counts[common], counts[~common].sum())
    wanted = np.append(expected[common], expected[~common].sum())
    if wanted[-1] < 5:  # too rare for the chi-square: bounded by itself
        assert observed[-1] <= 25
        observed, wanted = observed[:-1], wanted[:-1] * (observed[:-1].sum() / wanted[:-1].sum())
    if len(wanted) > 1:
        assert stats.chisquare(observed, wanted).pvalue > 1e-6


@given(distributions(2), st.integers(0, 2**32))
@settings(max_examples=150)
def test_verified_codes_have_the_targets_distribution(pair: list[np.ndarray], seed: int) -> None:
    p, q = pair
    draws = 20_000
    codes, accepted = verified(p, q, draws, seed)
    assert_distributed_as(codes, q)
    rate = np.minimum(exact(p), exact(q)).sum()
    assert abs(accepted.mean() - rate) < 6 * np.sqrt(0.25 / draws)


@given(distributions(1), st.integers(0, 2**32))
def test_a_draft_from_the_targets_own_distribution_is_always_kept(rows: list[np.ndarray], seed: int) -> None:
    codes, uniforms = drafted(rows[0], 200, seed)
    uniforms[0] = JUST_BELOW_ONE
    p = np.broadcast_to(rows[0], (200, 1, len(rows[0])))
    kept, accepted = speculative_sample(p, p, codes, uniforms)
    assert accepted.all()
    np.testing.assert_array_equal(kept, codes)


@given(distributions(2), st.data())
def test_rejection_probability_is_the_share_of_uniforms_that_reject(
    pair: list[np.ndarray], data: st.DataObject
) -> None:
    p, q = pair
    code = data.draw(st.sampled_from(np.flatnonzero(p).tolist()))
    rows = (len(UNIFORM_GRID), 1, len(p))
    codes = np.full(rows[:2], code)
    uniforms = np.stack([UNIFORM_GRID, UNIFORM_GRID], axis=-1)[:, None]
    _, accepted = speculative_sample(np.broadcast_to(p, rows), np.broadcast_to(q, rows), codes, uniforms)
    predicted = rejection_probability(p[None], q[None], np.array([code]))
    assert predicted.shape == (1,)
    assert (predicted[0] == 0.0) == (q[code] >= p[code])
    assert abs((1.0 - accepted.mean()) - predicted[0]) <= 1.0 / len(UNIFORM_GRID)


@given(distributions(2))
def test_the_rejection_probability_is_the_distance_of_the_distributions(pair: list[np.ndarray]) -> None:
    p, q = pair
    every_code = np.arange(len(p))
    rejected = rejection_probability(np.tile(p, (len(p), 1)), np.tile(q, (len(p), 1)), every_code)
    drawn = p.astype(np.float64)
    assert (drawn * rejected).sum() == pytest.approx(np.maximum(0.0, drawn - q).sum(), abs=1e-12)


def test_a_code_beyond_the_draft_is_kept_where_the_target_may_draw_it() -> None:
    p = np.array([[0.0, 1.0, 0.0]], np.float32)
    q = np.array([[0.5, 0.5, 0.0]], np.float32)
    uniforms = np.full((1, 2), JUST_BELOW_ONE)
    for code, keeps in ((0, True), (2, False)):
        out, accepted = speculative_sample(p, q, np.array([code]), uniforms)
        assert accepted.tolist() == [keeps]
        assert q[0, out[0]] > 0
    assert rejection_probability(p, q, np.array([0])).tolist() == [0.0]


def test_disjoint_supports_always_resample_from_the_target() -> None:
    p = np.array([0.5, 0.5, 0.0, 0.0], np.float32)
    q = np.array([0.0, 0.0, 0.25, 0.75], np.float32)
    codes, accepted = verified(p, q, 20_000, 5)
    assert not accepted.any()
    assert_distributed_as(codes, q)


def test_a_residual_that_is_numerically_empty_falls_back_to_the_target() -> None:
    p = np.array([[0.25, 0.25, 0.5]], np.float32)
    np.testing.assert_array_equal(residual(p, p), p)
    # q sums to less than p everywhere: rejected, and nothing left of q - p.
    q = np.nextafter(p, np.float32(0.0))
    uniforms = np.array([[JUST_BELOW_ONE, 0.9]])
    code, accepted = speculative_sample(p, q, np.array([0]), uniforms)
    assert accepted.tolist() == [False]
    assert code.tolist() == [2]


@given(distributions(1), st.floats(0.0, 1.0, exclude_max=True))
@settings(max_examples=300)
def test_no_draw_gives_an_index_of_weight_zero(rows: list[np.ndarray], uniform: float) -> None:
    for u in (0.0, uniform, JUST_BELOW_ONE):
        for weights in (rows[0], 1e-20 * rows[0].astype(np.float64), 7.3 * rows[0]):
            code = sample(weights[None], np.array([u]))[0]
            assert weights[code] > 0


def test_softmax_at_a_temperature_against_hand_computation() -> None:
    logits = np.log(np.array([[1.0, 4.0, 9.0]], np.float32))
    np.testing.assert_allclose(softmax(logits, 1.0), [[1 / 14, 4 / 14, 9 / 14]], rtol=1e-6)
    np.testing.assert_allclose(softmax(logits, 2.0), [[1 / 6, 2 / 6, 3 / 6]], rtol=1e-6)
    np.testing.assert_allclose(softmax(logits + 1e4, 1.0), softmax(logits, 1.0), atol=1e-3)
    assert softmax(logits, 1.0).dtype == np.float32


@pytest.mark.parametrize("temperature", [1e-310, 1e-12])
def test_softmax_near_temperature_zero_takes_the_best(temperature: float) -> None:
    logits = np.array([[[3.0, -200.0, 2.9]]], np.float32)
    np.testing.assert_array_equal(softmax(logits, temperature), [[[1.0, 0.0, 0.0]]])


@given(st.integers(0, 2**32 - 1), st.integers(2, 64), st.floats(0.01, 10.0))
def test_counts_are_the_distribution_to_less_than_a_unit(seed: int, size: int, concentration: float) -> None:
    p = np.random.default_rng(seed).dirichlet(np.full(size, concentration), size=(3, 2)).astype(np.float32)
    counts = counted(p)
    assert counts.dtype == np.uint16
    assert (counts.sum(axis=-1, dtype=np.int64) == UNITS).all()
    assert np.abs(counts - p.astype(np.float64) * UNITS).max() < 1.01
    rounded = probabilities_of(counts)
    np.testing.assert_array_equal(counted(rounded), counts)  # nothing more is lost on the way

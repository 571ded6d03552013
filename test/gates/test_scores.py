from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from adahi_ros.gates.context import GateContext
from adahi_ros.gates.scores import BLIND, GATES, Gate
from adahi_ros.policy.distribution import UNITS, counted
from adahi_ros.policy.drafting import Draft


def evidence_of(draft: Draft, deviation: np.ndarray, uniforms: np.ndarray) -> GateContext:
    robots = len(uniforms)
    windows, goals = np.zeros((robots, 2, 3), np.float32), np.arange(robots, dtype=np.float32)[:, None]
    return GateContext(draft, deviation, uniforms, windows, goals)


def context(robots: int) -> GateContext:
    draw = np.random.default_rng(1)
    counts = counted(draw.dirichlet(np.ones(4), size=(robots, 2)))
    codes = draw.integers(4, size=(robots, 2))
    draft = Draft(codes, counts, np.zeros((robots, 1, 2), np.float32), np.ones(robots, bool))
    deviation = draw.exponential(size=robots)
    deviation[0] = np.inf
    return evidence_of(draft, deviation, draw.random(robots))


def test_every_gate_scores_every_robot() -> None:
    for name in GATES:
        score = Gate(name).score(context(5))
        assert score.shape == (5,), name
        assert not np.isnan(score).any(), name


def test_deviation_scores_by_the_deviation() -> None:
    seen = context(5)
    np.testing.assert_array_equal(Gate("deviation").score(seen), seen.deviation)


def test_uncertainty_scores_by_what_the_draft_gave_its_own_codes() -> None:
    counts = counted(np.array([[[0.5, 0.5], [0.2, 0.8]], [[1.0, 0.0], [0.0, 1.0]]]))
    draft = Draft(np.array([[0, 1], [0, 1]]), counts, np.zeros((2, 1, 2), np.float32), np.ones(2, bool))
    score = Gate("uncertainty").score(evidence_of(draft, np.zeros(2), np.zeros(2)))
    np.testing.assert_allclose(score, [1 - 0.5 * 0.8, 0.0], atol=2 / UNITS)


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.6, 1.0])
def test_random_transmits_at_the_rate_of_its_threshold(rate: float) -> None:
    robots = 20_000
    share = (Gate("random", 1.0 - rate).score(context(robots)) > 1.0 - rate).mean()
    assert abs(share - rate) < 5 * np.sqrt(rate * (1 - rate) / robots) + 1e-9


def test_random_is_blind_to_the_draft() -> None:
    seen = context(5)
    other = evidence_of(context(6).draft, np.zeros(5), seen.uniforms)
    np.testing.assert_array_equal(Gate("random").score(seen), Gate("random").score(other))


@pytest.mark.parametrize("name", sorted(GATES))
def test_blind_gates_are_those_that_score_the_same_whatever_was_drawn(name: str) -> None:
    seen, other = context(5), context(5)
    codes = (other.draft.codes + 1) % 4
    other = replace(other, draft=replace(other.draft, codes=codes), deviation=other.deviation[::-1])
    same = np.array_equal(Gate(name).score(seen), Gate(name).score(other))
    assert same == (name in BLIND)


@pytest.mark.parametrize("threshold", [-1e300, 0.0, 1e300])
def test_always_and_never_whatever_the_threshold(threshold: float) -> None:
    assert (Gate("always", threshold).score(context(3)) > threshold).all()
    assert not (Gate("never", threshold).score(context(3)) > threshold).any()


def test_an_unknown_gate_is_refused_with_those_there_are() -> None:
    allowed = "always, deviation, never, random, uncertainty"
    with pytest.raises(ValueError, match=f"gate: 'sometimes', must be one of {allowed}"):
        Gate("sometimes")


@pytest.mark.parametrize("threshold", [np.nan, np.inf, -np.inf])
def test_a_threshold_that_is_no_number_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match=re.escape(f"threshold: {threshold}, must be finite")):
        Gate("deviation", threshold)


def test_a_score_may_be_given_with_any_name() -> None:
    gate = Gate("by_goal", 1.5, lambda seen: seen.goals[:, 0])
    np.testing.assert_array_equal(gate.score(context(4)), [0.0, 1.0, 2.0, 3.0])
    replaced = Gate("always", 0.0, lambda seen: np.zeros(4))
    np.testing.assert_array_equal(replaced.score(context(4)), 0.0)
    with pytest.raises(ValueError, match="threshold: nan, must be finite"):
        Gate("by_goal", np.nan, lambda seen: seen.deviation)

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from adahi_ros.core.proposal import UNITS, CodeDistribution, Proposal, counted, probabilities_of
from adahi_ros.core.signature import Observations
from adahi_ros.gates.gate_config import ThresholdedGate
from adahi_ros.gates.interface import Gate, GateContext, PlanContext
from adahi_ros.gates.registry import GATES


def drafted(codes: np.ndarray, counts: np.ndarray) -> Proposal:
    def actions_of(codes: np.ndarray) -> np.ndarray:
        return np.zeros((len(codes), 1, 2), np.float32)

    return Proposal(actions_of(codes), CodeDistribution(probabilities_of(counts), codes, actions_of, counts))


def context_of(proposal: Proposal | None, deviation: np.ndarray, uniforms: np.ndarray) -> GateContext:
    robots = len(uniforms)
    goals = np.arange(robots, dtype=np.float32)[:, None]
    observations = Observations({"observation": np.zeros((robots, 2, 3), np.float32)}, {"goal": goals})
    observed = {"observation": np.zeros((robots, 3), np.float32), "goal": goals}
    drawn = None if proposal is None else proposal.distribution
    intended = np.zeros((robots, 2)) if drawn is None else drawn.codes.astype(float)
    course = PlanContext(intended, intended, np.zeros((robots, 1, 2)), np.ones(robots, np.int64))
    ages = np.zeros(robots)
    return GateContext(0, observed, observations, proposal, deviation, ages, uniforms, None, course)


def context(robots: int) -> GateContext:
    draw = np.random.default_rng(1)
    counts = counted(draw.dirichlet(np.ones(4), size=(robots, 2)))
    codes = draw.integers(4, size=(robots, 2))
    draft = drafted(codes, counts)
    deviation = draw.exponential(size=robots)
    deviation[0] = np.inf
    return context_of(draft, deviation, draw.random(robots))


def test_every_gate_scores_every_robot(made: Callable[[str], Gate]) -> None:
    for name in GATES:
        score = made(name).score(context(5))
        assert score.shape == (5,), name
        assert not np.isnan(score).any(), name


def test_uncertainty_scores_by_what_the_draft_gave_its_own_codes() -> None:
    counts = counted(np.array([[[0.5, 0.5], [0.2, 0.8]], [[1.0, 0.0], [0.0, 1.0]]]))
    draft = drafted(np.array([[0, 1], [0, 1]]), counts)
    score = ThresholdedGate("uncertainty").gate.score(context_of(draft, np.zeros(2), np.zeros(2)))
    np.testing.assert_allclose(score, [1 - 0.5 * 0.8, 0.0], atol=2 / UNITS)


def test_the_expected_error_is_the_correctors_and_infinite_without_one() -> None:
    expected = np.array([0.1, np.inf, 2.0])
    corrected = Proposal(np.zeros((3, 1, 2), np.float32), expected_error=expected)
    gate = ThresholdedGate("expected_error", 0.5).gate
    assert gate.blind
    np.testing.assert_array_equal(gate.score(context_of(corrected, np.zeros(3), np.zeros(3))), expected)
    for silent in (None, Proposal(np.zeros((3, 1, 2), np.float32))):
        assert np.isinf(gate.score(context_of(silent, np.zeros(3), np.zeros(3)))).all()


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.6, 1.0])
def test_random_transmits_at_the_rate_of_its_threshold(rate: float) -> None:
    robots = 20_000
    share = (ThresholdedGate("random", 1.0 - rate).gate.score(context(robots)) > 1.0 - rate).mean()
    assert abs(share - rate) < 5 * np.sqrt(rate * (1 - rate) / robots) + 1e-9


@pytest.mark.parametrize("name", sorted(GATES))
def test_blind_gates_are_those_that_score_the_same_whatever_was_drawn(
    name: str, made: Callable[[str], Gate]
) -> None:
    seen, other = context(5), context(5)
    assert other.proposal is not None
    assert other.proposal.distribution is not None
    drawn = other.proposal.distribution
    assert drawn.counts is not None
    draft = drafted((drawn.codes + 1) % 4, drawn.counts)
    other = context_of(draft, other.deviation[::-1], other.uniforms)
    same = np.array_equal(made(name).score(seen), made(name).score(other))
    assert same == made(name).blind


def test_an_unknown_gate_is_refused_with_those_there_are() -> None:
    allowed = ", ".join(sorted(GATES))
    with pytest.raises(ValueError, match=f"gate: 'sometimes', must be one of {allowed}"):
        ThresholdedGate("sometimes")


@pytest.mark.parametrize("threshold", [np.nan, np.inf, -np.inf])
def test_a_threshold_that_is_no_number_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match=re.escape(f"threshold: {threshold}, must be finite")):
        ThresholdedGate("deviation", threshold)


def test_what_was_requested_long_ago_is_requested_again() -> None:
    seen = replace(context(3), age=np.array([0.0, 7.0, np.inf]))
    assert (ThresholdedGate("age", 6.0).gate.score(seen) > 6.0).tolist() == [False, True, True]


def test_a_robot_asks_more_often_the_more_its_replies_change() -> None:
    """Steps to the next request after replies that change the action by so much; three robots."""
    gate = ThresholdedGate("change", arguments={"shortest": 4, "longest": 30, "tolerance": 0.1}).gate
    assert gate.blind
    actions = np.zeros((3, 1, 2), np.float32)

    def period(*changes: float, begins: bool = False) -> list[float]:
        proposal = Proposal(actions, change=np.array(changes))
        seen = context_of(proposal, np.zeros(3), np.zeros(3))
        scores = gate.score(replace(seen, age=np.zeros(3), begins=begins))
        return [float(each) for each in 1.0 - scores]

    nan = np.nan
    assert period(nan, nan, nan, begins=True) == [4, 4, 4]
    assert period(0.0, 0.05, nan) == [16, 8, 4]
    assert period(0.2, 0.0, 9.0) == [8, 30, 4]
    assert period(nan, nan, nan) == [8, 30, 4]
    assert period(nan, nan, nan, begins=True) == [4, 4, 4]
    for silent in (None, Proposal(actions)):
        assert np.isinf(gate.score(context_of(silent, np.zeros(3), np.zeros(3)))).all()
    with pytest.raises(ValueError, match="shortest: 31, must be at most longest, 30"):
        ThresholdedGate("change", arguments={"shortest": 31, "longest": 30})


def test_uncertainty_asks_where_nothing_was_drawn() -> None:
    assert np.isinf(ThresholdedGate("uncertainty").gate.score(replace(context(2), proposal=None))).all()


def test_a_gate_with_a_misspelt_name_is_refused_with_the_right_one() -> None:
    with pytest.raises(TypeError, match=r"^Wrong: blnd: has no meaning here \(did you mean 'blind'\?\)"):
        type("Wrong", (Gate,), {"blnd": True})
    type("Right", (Gate,), {"blind": True, "start": 0, "_states": ()})

"""Thresholds that are learned while they are used: what they hold, whatever drifts."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

from adahi_ros.gates.context import Course, GateContext
from adahi_ros.gates.online import LATEST_REPLY, OnlineGate, Ranks
from adahi_ros.gates.scores import GATES, Trigger
from adahi_ros.policy.signature import Observations

DRIFTS = 100
TOLERANCE = 0.5
BOUND = 0.1
RATE = 0.1


class Given:
    """A gate that scores what it is given."""

    blind = True
    scores = np.zeros(1)

    def score(self, context: GateContext) -> np.ndarray:
        return self.scores


def context(step: int, uniforms: np.ndarray) -> GateContext:
    robots = len(uniforms)
    nothing, one = np.zeros(robots), np.zeros((robots, 1))
    course = Course(one, one, one[:, None], np.ones(robots, np.int64))
    seen, begins = Observations({}, {}), step == 0
    return GateContext(step, {}, seen, None, nothing, nothing, uniforms, None, course, begins)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    gate = Given()
    monkeypatch.setitem(GATES.shipped, "given", lambda: gate)
    return gate


@dataclass(frozen=True)
class Drifted:
    """What became of (T, DRIFTS) steps."""

    asked: np.ndarray
    wrong: np.ndarray
    gate: OnlineGate


def drift(gate: OnlineGate, given: Given, steps: int, seed: int = 0, useless: bool = False) -> Drifted:
    """Run a gate while draft, task and link change, each at a moment of its own in every drift.

    The draft's errors grow or shrink; with another task the score has other units, and tells less or more;
    with another link more robots are without a plan, and replies come up to three steps later.
    """
    draw, who = np.random.default_rng(seed), np.arange(DRIFTS)
    changes = draw.integers(steps, size=(3, DRIFTS))
    size = np.exp(draw.normal(-1.2, 0.6, size=(2, DRIFTS)))
    unit, telling = np.exp(draw.normal(0.0, 3.0, size=(2, DRIFTS))), draw.random((2, DRIFTS))
    lost, late = 0.05 * draw.random((2, DRIFTS)), draw.integers(4, size=(2, DRIFTS))
    asked, wrong = np.zeros((2, steps, DRIFTS), dtype=bool)
    under_way: list[tuple[np.ndarray, int, np.ndarray]] = []
    for step in range(steps):
        draft, task, link = (step >= changes).astype(int)
        error = size[draft, who] * np.exp(0.8 * draw.normal(size=DRIFTS))
        noise = np.exp(0.8 * draw.normal(size=DRIFTS))
        share = 0.0 if useless else telling[task, who]
        given.scores = unit[task, who] * (share * error + (1.0 - share) * noise)
        given.scores[draw.random(DRIFTS) < lost[link, who]] = np.inf
        given.scores[draw.random(DRIFTS) < 0.01] = np.nan
        asks = ~(gate.score(context(step + 1, draw.random(DRIFTS))) <= 0.0)
        under_way.append((np.where(asks, step + late[link, who], -1), step + 1, error))
        for due, requested_at, fresh in under_way:
            here = np.flatnonzero(due == step)
            gate.learn(requested_at, fresh[here, None], here)
        under_way = under_way[-4:]
        asked[step], wrong[step] = asks, error > TOLERANCE
    return Drifted(asked, wrong, gate)


def test_what_goes_wrong_unasked_stays_below_the_bound_in_95_of_100_drifts(given: Given) -> None:
    gate = OnlineGate("given", wrong=BOUND, tolerance=TOLERANCE)
    ran = drift(gate, given, 4000)
    missed = (ran.wrong & ~ran.asked).mean(axis=0)
    assert (missed <= BOUND).sum() >= 95
    assert (ran.wrong.mean(axis=0) > 1.5 * BOUND).sum() > 50  # what never asking would have led to
    assert ran.asked.mean() < 0.75
    told = np.array([state.wrong for state in gate.states])
    assert abs(told.mean() - missed.mean()) < 0.01  # what is published is what happens


def test_the_bound_holds_for_a_score_that_tells_nothing_at_the_price_of_requests(given: Given) -> None:
    useless = drift(OnlineGate("given", wrong=BOUND, tolerance=TOLERANCE), given, 3000, 1, useless=True)
    missed = (useless.wrong & ~useless.asked).mean(axis=0)
    assert (missed <= BOUND).sum() >= 95
    assert useless.asked.mean() > 0.3


def test_the_rate_stays_within_two_hundredths_of_what_was_asked_for(given: Given) -> None:
    steps, pace = 1500, 0.05
    ran = drift(OnlineGate("given", rate=RATE, pace=pace), given, steps, 2)
    apart = np.abs(ran.asked.mean(axis=0) - RATE)
    assert apart.max() <= (1 + 2 * pace) / (pace * steps) <= 0.02  # the theorem's, for every one
    blocks = ran.asked.reshape(5, 300, DRIFTS).mean(axis=1)
    assert np.abs(blocks.mean(axis=1) - RATE).max() < 0.02  # all along, not on the whole alone
    informed = ran.wrong[ran.asked].mean() / ran.wrong.mean()
    assert informed > 1.3  # it asks where it matters


def test_exploration_counts_as_asking(given: Given) -> None:
    ran = drift(OnlineGate("given", rate=0.2, explore=0.05, pace=0.05), given, 1500, 3)
    assert np.abs(ran.asked.mean(axis=0) - 0.2).max() < 0.02
    states = ran.gate.states
    assert 0.02 < np.mean([state.explored for state in states]) / 1500 < 0.05
    assert abs(np.mean([state.rate for state in states]) - 0.2) < 0.02


def test_a_state_is_bounded_whatever_comes(given: Given) -> None:
    for gate in (
        OnlineGate("given", wrong=0.5, tolerance=0.1, pace=0.5),
        OnlineGate("given", rate=0.5, pace=0.5),
    ):
        draw = np.random.default_rng(1)
        for step in range(300):
            given.scores = draw.choice([np.nan, np.inf, -np.inf, 0.0, 1e300, -1e300, 5e-324], size=4)
            margin = gate.score(context(step, draw.random(4)))
            assert not np.isnan(margin).any()
            gate.learn(step, np.full((4, 1), draw.choice([0.0, np.nan, 1e300])), np.arange(4))
            for state in gate.states:
                assert -0.5 / 0.05 <= state.threshold <= 1.5
                assert np.isfinite([state.threshold, state.rate]).all()
    assert np.isinf(margin[np.isnan(given.scores) | (given.scores == np.inf)]).all()


def test_a_reply_that_comes_twice_or_from_nowhere_counts_once_or_not(given: Given) -> None:
    gate = OnlineGate("given", wrong=0.5, tolerance=0.1, explore=0.9)
    given.scores = np.zeros(1)
    for step in range(1, 200):  # until it leaves steps unasked
        gate.score(context(step, np.array([0.3])))
    before = gate.states[0]
    assert before.threshold > 0.5
    bad = np.full((1, 1), 9.0)
    gate.learn(1000, bad, np.array([0]))
    assert gate.states[0] == before
    gate.learn(199, bad, np.array([0]))
    once = gate.states[0]
    assert (once.explored, once.threshold) == (1, pytest.approx(before.threshold - 0.02 / 0.9))
    gate.learn(199, bad, np.array([0]))
    assert gate.states[0] == once


@pytest.mark.parametrize(("later", "learned"), [(LATEST_REPLY - 1, 1), (LATEST_REPLY + 1, 0)])
def test_a_reply_that_is_too_late_teaches_nothing_though_steps_were_not_seen(
    given: Given, later: int, learned: int
) -> None:
    gate = OnlineGate("given", wrong=0.5, tolerance=0.1, explore=0.9)
    given.scores = np.zeros(1)
    for step in (*range(1, 200), 199 + later):
        gate.score(context(step, np.array([0.3])))
    gate.learn(199, np.full((1, 1), 9.0), np.array([0]))
    assert gate.states[0].explored == learned


def test_what_was_learned_outlasts_an_episode_and_not_the_robots(given: Given) -> None:
    gate = OnlineGate("given", rate=0.3)
    given.scores = np.zeros(2)
    for step in (0, 1, 2, 0, 1):
        gate.score(context(step, np.full(2, 0.5)))
    assert [state.steps for state in gate.states] == [5, 5]
    given.scores = np.zeros(3)
    gate.score(context(2, np.full(3, 0.5)))
    assert [state.steps for state in gate.states] == [1, 1, 1]


def test_ranks_do_not_depend_on_units_and_forget() -> None:
    values = np.random.default_rng(1).normal(size=(600, 1))
    one, other = Ranks(1), Ranks(1)
    ranks = np.array([one.rank(each)[0] for each in values])
    np.testing.assert_array_equal(ranks, [other.rank(1e6 * each + 3.0)[0] for each in values])
    np.testing.assert_allclose(np.quantile(ranks[200:], [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.06)
    for _ in range(200):
        one.rank(np.array([1000.0]))
    assert one.rank(np.array([1000.0]))[0] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({}, "rate, wrong: nan, nan, must be one of the two"),
        ({"rate": 0.1, "wrong": 0.1}, "rate, wrong: 0.1, 0.1, must be one of the two"),
        ({"rate": 1.5}, "rate: 1.5, must be between 0.0 and 1.0"),
        ({"rate": 0.1, "explore": 0.2}, "explore: 0.2, must be between 0.0 and 0.1"),
        ({"wrong": 0.1, "explore": 0.0}, "explore: 0.0, must be between 0.0 and 1.0"),
        ({"wrong": 0.1, "pace": 0.0}, "pace: 0.0, must be between 0.0 and 1.0"),
        ({"wrong": 0.1, "file": "x"}, "gate surprise: got an unexpected keyword argument 'file'"),
    ],
)
def test_what_cannot_be_wanted_is_told(arguments: dict[str, float], fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        Trigger("online", arguments={"gate": "surprise", **arguments})

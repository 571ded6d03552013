"""Thresholds that are learned while they are used: what they hold, whatever drifts."""

from __future__ import annotations

import re

import numpy as np
import pytest

from adahi_ros.gates.gate_config import ThresholdedGate
from adahi_ros.gates.online import LATEST_REPLY, OnlineGate
from test.gates.drifting_clocks import (
    BOUND,
    DRIFTS,
    FOLLOWED,
    RATE,
    RATE_PACE,
    RATE_STEPS,
    drift,
    drift_of_bound,
    drift_of_rate,
    scored,
)


def test_what_goes_wrong_unasked_stays_below_the_bound_in_95_of_100_drifts() -> None:
    ran = drift_of_bound()
    assert (ran.missed <= BOUND).sum() >= 95
    assert (ran.wrong.mean(axis=0) > 1.5 * BOUND).sum() > 50  # what never asking would have led to
    assert ran.requested.mean() < 0.75
    reported = np.array([state.wrong for state in ran.gate.states])
    assert abs(reported.mean() - ran.missed.mean()) < 0.01  # what is published is what happens


def test_the_rate_stays_within_two_hundredths_of_what_was_requested() -> None:
    ran = drift_of_rate()
    apart = np.abs(ran.requested.mean(axis=0) - RATE)
    assert (
        apart.max() <= (1 + 2 * RATE_PACE) / (RATE_PACE * RATE_STEPS) <= 0.02
    )  # the theorem's, for every one
    blocks = ran.requested.reshape(5, 300, DRIFTS).mean(axis=1)
    assert np.abs(blocks.mean(axis=1) - RATE).max() < 0.02  # all along, not on the whole alone
    informed = ran.wrong[ran.requested].mean() / ran.wrong.mean()
    assert informed > 1.3  # it asks where it matters


def test_exploration_counts_as_asking() -> None:
    ran = drift(OnlineGate(FOLLOWED, rate=0.2, explore=0.05, pace=0.05), 1500, 3)
    assert np.abs(ran.requested.mean(axis=0) - 0.2).max() < 0.02
    states = ran.gate.states
    assert 0.02 < np.mean([state.explored for state in states]) / 1500 < 0.05
    assert abs(np.mean([state.rate for state in states]) - 0.2) < 0.02


def test_a_state_is_bounded_whatever_comes() -> None:
    for gate in (
        OnlineGate(FOLLOWED, error_share=0.5, tolerance=0.1, pace=0.5),
        OnlineGate(FOLLOWED, rate=0.5, pace=0.5),
    ):
        draw = np.random.default_rng(1)
        for step in range(300):
            scores = draw.choice([np.nan, np.inf, -np.inf, 0.0, 1e300, -1e300, 5e-324], size=4)
            margin = gate.score(scored(step, scores, draw.random(4)))
            assert not np.isnan(margin).any()
            gate.learn(step, np.full((4, 1), draw.choice([0.0, np.nan, 1e300])), np.arange(4))
            for state in gate.states:
                assert -0.5 / 0.05 <= state.threshold <= 1.5
                assert np.isfinite([state.threshold, state.rate]).all()
    assert np.isinf(margin[np.isnan(scores) | (scores == np.inf)]).all()


def test_a_reply_that_comes_twice_or_from_nowhere_counts_once_or_not() -> None:
    gate = OnlineGate(FOLLOWED, error_share=0.5, tolerance=0.1, explore=0.9)
    for step in range(1, 200):  # until it leaves steps unasked
        gate.score(scored(step, np.zeros(1), np.array([0.3])))
    before = gate.states[0]
    assert before.threshold > 0.5
    bad = np.full((1, 1), 9.0)
    gate.learn(1000, bad, np.array([0]))
    assert gate.states[0] == before
    gate.learn(199, bad, np.array([0]))
    once = gate.states[0]
    assert once.explored == 1
    assert once.threshold == pytest.approx(before.threshold - 0.02 / 0.9)
    gate.learn(199, bad, np.array([0]))
    assert gate.states[0] == once


@pytest.mark.parametrize(("later", "learned"), [(LATEST_REPLY - 1, 1), (LATEST_REPLY + 1, 0)])
def test_a_late_reply_teaches_nothing_though_steps_were_not_seen(later: int, learned: int) -> None:
    gate = OnlineGate(FOLLOWED, error_share=0.5, tolerance=0.1, explore=0.9)
    for step in (*range(1, 200), 199 + later):
        gate.score(scored(step, np.zeros(1), np.array([0.3])))
    gate.learn(199, np.full((1, 1), 9.0), np.array([0]))
    assert gate.states[0].explored == learned


def test_what_was_learned_outlasts_an_episode_and_not_the_robots() -> None:
    gate = OnlineGate(FOLLOWED, rate=0.3)
    for step in (0, 1, 2, 0, 1):
        gate.score(scored(step, np.zeros(2), np.full(2, 0.5)))
    assert [state.steps for state in gate.states] == [5, 5]
    gate.score(scored(2, np.zeros(3), np.full(3, 0.5)))
    assert [state.steps for state in gate.states] == [1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({}, "rate, error_share: 0.0, 0.0, must be one of the two"),
        ({"rate": 0.1, "error_share": 0.1}, "rate, error_share: 0.1, 0.1, must be one of the two"),
        ({"rate": 1.5}, "rate: 1.5, must be between 0.0 and 1.0"),
        ({"rate": 0.1, "explore": 0.2}, "explore: 0.2, must be between 0.0 and 0.1"),
        ({"wrong": 0.1, "error_share": 0.1}, "must not name an argument twice"),
        ({"wrong": 0.1, "pace": 0.0}, "pace: 0.0, must be between 0.0 and 1.0"),
        ({"wrong": 0.1, "file": "x"}, "gate age: got an unexpected keyword argument 'file'"),
    ],
)
def test_what_cannot_be_wanted_is_reported(arguments: dict[str, float], fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        ThresholdedGate("online", arguments={"gate": "age", **arguments})

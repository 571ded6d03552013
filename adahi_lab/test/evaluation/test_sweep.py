from __future__ import annotations

from collections import Counter
from dataclasses import astuple, replace

import numpy as np
import pytest

from adahi_lab.evaluation.evaluate import Comparison, Outcome, outcome_figures, play_all
from adahi_lab.evaluation.loaded_policies import Policies
from adahi_lab.evaluation.rollout import Log
from adahi_lab.evaluation.sweep import (
    COUNTED,
    SWEPT,
    Point,
    _next_threshold,
    areas,
    fixed_methods,
    sweep,
)

FIXED = ("draft", "plan_2", "plan_4", "plan_8")
RATES = (1.0, 0.75, 0.5, 0.25)
EPISODES = range(30)
BY_LOT = ("random", "random_cool")


@pytest.fixture(scope="module")
def played() -> Counter[str]:
    return Counter()


@pytest.fixture(scope="module")
def points(comparison: Comparison, played: Counter[str]) -> list[Point]:
    # No threshold of the calibration is used.
    bare = replace(comparison, calibration=replace(comparison.calibration, thresholds={}))
    return sweep(bare, EPISODES, 1, RATES, FIXED, lambda name, done: played.update({name: done}))


def rates_of(points: list[Point], name: str) -> list[float]:
    return [point.figures["transmission_rate"] for point in points if point.method == name]


def test_each_gate_is_run_at_each_rate_and_the_others_once(points: list[Point], played: Counter[str]) -> None:
    runs = {**dict.fromkeys(FIXED, 1), **dict.fromkeys(SWEPT, len(RATES))}
    assert Counter(point.method for point in points) == runs
    assert played == {name: count * len(EPISODES) for name, count in runs.items()}


@pytest.mark.parametrize("name", SWEPT)
def test_rates_fall_from_one(points: list[Point], name: str) -> None:
    rates = rates_of(points, name)
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 0.5
    if name == "oracle":  # it never sends what the target is sure to accept
        assert 0.5 < rates[0] < 1.0
    else:
        assert rates[0] == 1.0
        assert rates == pytest.approx(RATES, abs=0.12)  # a quantile at the rate before: near, not exact


@pytest.mark.parametrize("name", BY_LOT)
def test_random_transmits_at_the_wanted_rates(points: list[Point], name: str) -> None:
    chosen = [point.figures for point in points if point.method == name]
    for wanted, figures in zip(RATES, chosen, strict=True):
        steps = figures["steps_per_episode"] * len(EPISODES)
        assert abs(figures["transmission_rate"] - wanted) <= 5 * np.sqrt(wanted * (1 - wanted) / steps)


def test_a_point_is_what_a_comparison_at_that_rate_measures(
    points: list[Point], comparison: Comparison
) -> None:
    calibration = replace(comparison.calibration, thresholds={"random": 0.5})
    outcome = play_all(replace(comparison, calibration=calibration), ["random", "draft"], EPISODES, 1)
    for name, index in (("random", RATES.index(0.5)), ("draft", 0)):
        expected = outcome_figures(outcome[name])
        found = [point.figures for point in points if point.method == name][index]
        assert found == expected


def scored(scores: list[float]) -> Outcome:
    """One episode with these scores."""
    score = np.array(scores)[:, None]
    yes, action = np.ones(score.shape, dtype=bool), np.zeros((*score.shape, 2))
    log = Log(yes, yes, score, score, yes[..., None], action, action, ~yes, score, ~yes)
    return Outcome(log, np.array([True]), np.array([[True]]), np.array([[True]]))


@pytest.mark.parametrize("endless", [np.inf, -np.inf])
def test_without_a_finite_score_any_threshold_will_do(endless: float) -> None:
    assert _next_threshold(scored([endless] * 3), 0.5) == 0.0


def test_every_gate_with_a_threshold_is_swept() -> None:
    assert SWEPT == {
        "adahi": "deviation",
        "random": "random",
        "uncertainty": "uncertainty",
        "random_cool": "random",
        "oracle": "oracle",
    }


def test_plans_are_of_every_period_that_a_target_plans_for(policies: Policies) -> None:
    assert fixed_methods(policies) == FIXED  # its plans are eight actions long
    assert fixed_methods(replace(policies, plans=None)) == ("draft",)
    corrected = Policies(policies.draft, policies.target, policies.plans, policies.draft)  # type: ignore[arg-type]
    assert fixed_methods(corrected) == (*FIXED, "corrector_2", "corrector_4", "corrector_8")


def point(method: str, rate: float, success: float) -> Point:
    return Point(method, {"transmission_rate": rate, "success_rate": success})


def test_areas_are_of_curves_and_plans_of_every_period_are_one() -> None:
    low, high = COUNTED
    found = areas(
        [
            point("draft", 0.0, 0.1),
            point("adahi", 1.0, 1.0),
            point("adahi", 0.0, 0.0),
            point("plan_2", 0.5, 0.9),
            point("plan_8", 0.125, 0.5),
        ]
    )
    plans = 0.5 * (0.125 - low) + (0.5 + 0.9) / 2 * (high - 0.125)
    assert {name: astuple(each) for name, each in found.items()} == {
        "adahi": (pytest.approx((low + high) / 2), (0.0, 1.0), 2),
        "plan_K": (pytest.approx(plans / (high - low)), (0.125, 0.5), 2),
    }

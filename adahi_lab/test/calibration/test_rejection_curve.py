from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_lab.calibration.rejection_curve import (
    MOST_TRIALS,
    RATE_TOLERANCE,
    Fit,
    rejection_curve,
    threshold_for_rate,
)

ACTIONS = 200_000
Trial = Callable[[float], tuple[np.ndarray, float]]


def sample(law: str, slope: float, intercept: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw deviations and rejections whose probability follows a law."""
    draw = np.random.default_rng(3)
    deviation = draw.uniform(0.05, 2.0, ACTIONS)
    x = np.log(deviation) if law == "logarithmic" else deviation
    return deviation, draw.random(ACTIONS) < slope * x + intercept


@pytest.mark.parametrize(("law", "slope", "intercept"), [("linear", 0.4, 0.1), ("logarithmic", 0.2, 0.7)])
def test_a_known_law_is_recovered(law: str, slope: float, intercept: float) -> None:
    curve = rejection_curve(*sample(law, slope, intercept))
    assert curve.best.kind == law
    assert curve.best.slope == pytest.approx(slope, abs=0.01)
    assert curve.best.intercept == pytest.approx(intercept, abs=0.01)
    assert curve.best.r2 > 0.99
    other = curve.linear if law == "logarithmic" else curve.logarithmic
    assert other.r2 < curve.best.r2 - 0.01
    assert 0.2 < curve.rank_correlation < 1
    assert curve.actions == ACTIONS


@pytest.mark.parametrize("all_or_none", [True, False])
@pytest.mark.filterwarnings("error")
def test_where_nothing_varies_nothing_is_explained(all_or_none: bool) -> None:
    curve = rejection_curve(np.linspace(0.1, 1.0, 100), np.full(100, all_or_none))
    assert curve.rank_correlation == curve.linear.r2 == curve.logarithmic.r2 == 0.0
    assert curve.best.slope == 0.0
    with pytest.raises(ValueError, match="slope: 0, must be above 0: deviation tells nothing here"):
        curve.best.threshold(0.5)


@pytest.mark.parametrize("deviation", [np.ones(500), np.arange(1.0, 40.0), np.full(500, np.inf)])
def test_too_little_to_go_by_is_refused(deviation: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"deviation: \d+ usable actions, must be at least 40 that differ"):
        rejection_curve(deviation, np.zeros(len(deviation), dtype=bool))


@given(st.sampled_from(["linear", "logarithmic"]), st.floats(0.05, 0.95), st.floats(0.1, 2.0))
def test_a_threshold_is_where_the_fit_has_that_rejection(kind: str, rejection: float, slope: float) -> None:
    fit = Fit(kind, slope, 0.04, 1.0)
    assert fit.rejection(np.array(fit.threshold(rejection))) == pytest.approx(rejection)


def test_a_threshold_is_never_negative() -> None:
    assert Fit("linear", 0.5, 0.3, 1.0).threshold(0.1) == 0.0


@pytest.mark.parametrize("rejection", [-0.1, 1.1, math.nan])
def test_a_rejection_that_is_no_probability_is_named(rejection: float) -> None:
    with pytest.raises(ValueError, match=f"rejection: {rejection}, must be 0 to 1"):
        Fit("linear", 0.5, 0.3, 1.0).threshold(rejection)


def test_a_fit_that_does_not_rise_has_no_threshold() -> None:
    with pytest.raises(ValueError, match=re.escape("slope: -0.1, must be above 0")):
        Fit("linear", -0.1, 0.3, 1.0).threshold(0.2)


def stationary(scores: np.ndarray) -> Trial:
    """A gate whose scores do not depend on what it lets through."""
    return lambda threshold: (scores, float((scores > threshold).mean()))


def feeding_back(gain: float) -> Trial:
    """A gate that calms what it scores: the more it transmits, the lower the scores."""
    draws = np.random.default_rng(2).exponential(size=4000)

    def trial(threshold: float) -> tuple[np.ndarray, float]:
        low, high = 0.0, 1.0
        for _ in range(40):  # the rate at which the scores give that very rate
            rate = (low + high) / 2
            above = (draws * np.exp(-gain * rate) > threshold).mean() > rate
            low, high = (rate, high) if above else (low, rate)
        scores = draws * np.exp(-gain * rate)
        return scores, float((scores > threshold).mean())

    return trial


def counted(trial: Trial) -> tuple[Trial, list[float]]:
    tried: list[float] = []

    def counting(threshold: float) -> tuple[np.ndarray, float]:
        tried.append(threshold)
        return trial(threshold)

    return counting, tried


@pytest.mark.parametrize("rate", [0.3, 0.6, 0.9])
def test_steps_that_are_transmitted_whatever_the_threshold_are_counted(rate: float) -> None:
    scores = np.random.default_rng(1).exponential(size=2000)
    scores[:400] = np.inf
    threshold, measured = threshold_for_rate(stationary(scores), rate)
    assert measured == pytest.approx(rate, abs=RATE_TOLERANCE)
    assert math.isfinite(threshold)


# Of every ten scores two are infinite, three are 2, two are 1 and three are 0.
@pytest.mark.parametrize("gain", [6.0, 10.0])
def test_a_rate_is_met_where_asking_calms_the_scores_very_much(gain: float) -> None:
    assert threshold_for_rate(feeding_back(gain), 0.1)[1] == pytest.approx(0.1, abs=RATE_TOLERANCE)


@pytest.mark.parametrize("score", [np.inf, -np.inf, 0.5])
@pytest.mark.filterwarnings("error")
def test_where_all_scores_are_the_same_the_search_ends(score: float) -> None:
    trial, tried = counted(stationary(np.full(50, score)))
    threshold, measured = threshold_for_rate(trial, 0.6)
    assert measured == (0.0 if score == -np.inf else 1.0)
    assert math.isfinite(threshold)
    assert len(tried) <= MOST_TRIALS


@pytest.mark.parametrize("rate", [0.0, 1.0, -1.0, math.nan])
def test_a_rate_out_of_range_is_named(rate: float) -> None:
    with pytest.raises(ValueError, match=f"rate: {rate}, must be between 0 and 1"):
        threshold_for_rate(stationary(np.ones(5)), rate)

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.speculation.calibration import Fit, rejection_curve, threshold_for_rate

ACTIONS = 200_000


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


def test_bins_hold_equally_many_in_rising_order() -> None:
    deviation = np.arange(100, 0, -1.0)
    curve = rejection_curve(deviation, deviation > 75, bins=4)
    assert curve.deviation.tolist() == [13.0, 38.0, 63.0, 88.0]
    assert curve.rejection.tolist() == [0.0, 0.0, 0.0, 1.0]


def test_steps_without_a_past_and_those_standing_still_are_left_out() -> None:
    deviation, rejected = sample("linear", 0.4, 0.1)
    deviation, rejected = deviation[:1000], rejected[:1000]
    plain = rejection_curve(deviation, rejected)
    odd = np.array([np.inf, 0.0, np.nan, np.inf])
    curve = rejection_curve(np.concatenate([odd, deviation]), np.concatenate([[True] * 4, rejected]))
    assert curve.actions == 1000
    assert (curve.linear, curve.logarithmic) == (plain.linear, plain.logarithmic)
    np.testing.assert_array_equal(curve.deviation, plain.deviation)


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


@given(st.floats(0.02, 0.98), st.floats(0.1, 10.0))
def test_a_threshold_for_a_rate_has_that_rate(rate: float, scale: float) -> None:
    def rate_at(threshold: float) -> float:
        return math.exp(-threshold / scale)

    threshold, measured = threshold_for_rate(rate_at, 5 * scale, rate)
    assert measured == rate_at(threshold) == pytest.approx(rate, abs=0.002)


def test_a_rate_that_cannot_be_met_gets_the_nearest() -> None:
    threshold, measured = threshold_for_rate(lambda threshold: 0.8 if threshold < 1 else 0.1, 4.0, 0.6)
    assert measured == 0.8
    assert threshold < 1


@pytest.mark.parametrize("rate", [0.0, 1.0, -1.0, math.nan])
def test_a_rate_out_of_range_is_named(rate: float) -> None:
    with pytest.raises(ValueError, match=f"rate: {rate}, must be between 0 and 1"):
        threshold_for_rate(lambda threshold: 0.5, 1.0, rate)

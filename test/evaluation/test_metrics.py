from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from adahi_ros.evaluation.metrics import transmission_rate, true_skip_ratio, wilson_interval


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_scipys(counts: tuple[int, int]) -> None:
    successes, trials = counts
    expected = binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    assert wilson_interval(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_the_interval_contains_the_share_at_both_ends() -> None:
    for trials in range(1, 1001):
        low, high = wilson_interval(0, trials)
        assert low == 0.0 < high < 1.0
        low, high = wilson_interval(trials, trials)
        assert 0.0 < low < high == 1.0


# Two episodes of three and two steps; the row past an episode's end counts for nothing.
ACTIVE = np.array([[1, 1], [1, 1], [1, 0]], dtype=bool)
TRANSMITTED = np.array([[1, 0], [0, 0], [0, 1]], dtype=bool)


def test_rates_by_hand() -> None:
    accepted = np.ones((3, 2, 2), dtype=bool)
    accepted[0, 0] = False  # transmitted: not skipped
    accepted[1, 0, 1] = False  # the secondary code alone makes it a false skip
    accepted[2, 1] = False  # past the end
    assert transmission_rate(TRANSMITTED, ACTIVE) == 1 / 5
    assert true_skip_ratio(TRANSMITTED, accepted, ACTIVE) == 3 / 4


def test_nothing_skipped_has_no_true_skip_ratio() -> None:
    assert true_skip_ratio(ACTIVE, np.ones((3, 2, 2), dtype=bool), ACTIVE) is None

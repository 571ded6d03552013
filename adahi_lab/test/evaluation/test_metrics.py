from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from adahi_lab.evaluation.metrics import (
    LEVEL,
    MARGIN,
    area_under,
    holm,
    mcnemar,
    no_worse,
    transmission_rate,
    true_skip_ratio,
    wilson_interval,
)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_scipys(counts: tuple[int, int]) -> None:
    successes, trials = counts
    expected = binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    assert wilson_interval(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-9)


def successes(only_this: int, only_other: int, both: int = 0, neither: int = 0) -> list[np.ndarray]:
    """Of two methods, by how many episodes there are of each kind."""
    counts = (only_this, only_other, both, neither)
    return [np.repeat(kinds, counts) for kinds in ([True, False, True, False], [False, True, True, False])]


@pytest.mark.parametrize(
    ("only_this", "only_other", "p", "verdict"),
    [
        (0, 0, 1.0, "undecided"),
        (3, 3, 1.0, "undecided"),
        (5, 0, 2 / 2**5, "no worse"),
        (6, 0, 2 / 2**6, "better"),
        (0, 6, 2 / 2**6, "worse"),
        (1, 8, 2 * (1 + 9) / 2**9, "worse"),
    ],
)
def test_a_coin_decides_where_one_alone_succeeds(
    only_this: int, only_other: int, p: float, verdict: str
) -> None:
    for both, neither in ((0, 0), (40, 7)):  # what both do tells nothing
        found = mcnemar(*successes(only_this, only_other, both, neither))
        assert (found.only_this, found.only_other) == (only_this, only_other)
        assert found.p == pytest.approx(p)
        assert found.verdict == verdict


def test_one_that_is_worse_by_the_margin_is_rarely_no_worse() -> None:
    """Of 600 episodes, as often as the test allows; one that is as good mostly is no worse."""
    draws = np.random.default_rng(0)
    shares = {least: [0.04 - least, 0.04, 0.9, 0.02 + least] for least in (MARGIN, 0.0)}
    found = {
        least: np.mean(
            [no_worse(each[0], each[1], 600) < LEVEL for each in draws.multinomial(600, kinds, 2000)]
        )
        for least, kinds in shares.items()
    }
    assert 0.03 < found[MARGIN] < 0.07
    assert found[0.0] > 0.7
    assert mcnemar(*successes(8, 8, 500, 84)).verdict == "no worse"


def test_holm_multiplies_the_smallest_most() -> None:
    assert holm([0.03, 0.01, 0.04, 0.9]) == pytest.approx([0.09, 0.04, 0.09, 0.9])
    assert holm([]) == []


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
    assert true_skip_ratio(TRANSMITTED, accepted[..., :1], ACTIVE) == 1


def test_nothing_skipped_has_no_true_skip_ratio() -> None:
    assert true_skip_ratio(ACTIVE, np.ones((3, 2, 2), dtype=bool), ACTIVE) is None


@pytest.mark.parametrize(
    ("points", "area"),
    [
        ([(0.3, 0.7)], 0.7),  # level on both sides
        ([(0.0, 0.0), (1.0, 1.0)], 0.4),
        ([(1.0, 1.0), (0.0, 0.0)], 0.4),  # in any order
        ([(0.2, 0.5), (0.6, 0.9)], 0.7),
        ([(0.4, 0.5), (0.5, 0.9)], (0.2 * 0.5 + 0.1 * 0.7 + 0.1 * 0.9) / 0.4),  # and beyond them level
        ([(0.2, 0.8), (0.4, 0.2), (0.6, 0.8)], 0.5),  # a worse point counts though more calls were made
        ([(0.2, 0.5), (0.4, 0.9), (0.4, 0.5), (0.6, 0.5)], 0.6),  # of one rate: the mean
        ([(0.2, 0.5), (0.6, 0.5), (0.9, 1.0), (0.1, 0.0)], 0.5),  # what lies outside counts for nothing
    ],
)
def test_the_area_under_points_by_hand(points: list[tuple[float, float]], area: float) -> None:
    rates, success = np.array(points).T
    assert area_under(rates, success, 0.2, 0.6) == pytest.approx(area)

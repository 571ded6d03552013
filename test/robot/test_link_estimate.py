from __future__ import annotations

import math

import numpy as np
import pytest

from adahi_ros.gates.interface import LinkEstimate
from adahi_ros.robot.link_estimate import LinkEstimator


def test_nothing_is_known_before_the_first_request() -> None:
    estimate = LinkEstimator().estimate(100.0)
    assert math.isnan(estimate.rtt_ms)
    assert math.isnan(estimate.loss)
    assert (estimate.goodput_bytes_s, estimate.requests, estimate.replies) == (0.0, 0, 0)


def steady(estimator: LinkEstimator, requests: int, seed: int = 0) -> float:
    """Reply to requests of 500 bytes, 20 a second, 12 ms each with 0.3 ms of jitter; return the time."""
    draw = np.random.default_rng(seed)
    for index in range(requests):
        estimator.replied(index / 20, float(draw.normal(12.0, 0.3)), 500)
    return requests / 20


def test_a_steady_link() -> None:
    estimator = LinkEstimator()
    estimate = estimator.estimate(steady(estimator, 400))
    assert estimate.rtt_ms == pytest.approx(12.0, abs=0.3)
    assert estimate.rtt_deviation_ms == pytest.approx(0.3 * math.sqrt(2 / math.pi), abs=0.15)
    assert (estimate.loss, estimate.misses) == (0.0, 0.0)
    assert estimate.goodput_bytes_s == pytest.approx(10_000, rel=0.05)
    assert (estimate.requests, estimate.replies) == (400, 400)


def test_the_round_trip_time_follows_the_link() -> None:
    estimator = LinkEstimator()
    now_s = steady(estimator, 100)
    for index in range(100):
        estimator.replied(now_s + index / 20, 40.0, 500)
    assert estimator.estimate(now_s + 5.0).rtt_ms == pytest.approx(40.0, abs=0.1)


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_a_reply_much_later_than_usual_counts_as_loss_but_not_as_a_miss(share: float) -> None:
    estimator, draw, seen = LinkEstimator(), np.random.default_rng(3), []
    for index in range(3000):
        estimator.replied(index / 20, 12.0 + 40.0 * (draw.random() < share), 500)
        seen.append(estimator.estimate(index / 20).loss)
    assert np.mean(seen[100:]) == pytest.approx(share, rel=0.3)
    assert estimator.estimate(150.0).misses == 0.0


def test_misses_count_as_loss_too_and_leave_the_round_trip_time_alone() -> None:
    estimator = LinkEstimator()
    now_s = steady(estimator, 100)
    before = estimator.estimate(now_s).rtt_ms
    for _ in range(50):
        estimator.missed()
    estimate = estimator.estimate(now_s)
    assert estimate.rtt_ms == before
    assert estimate.loss == estimate.misses == pytest.approx(1.0, abs=0.01)
    assert (estimate.requests, estimate.replies) == (150, 100)


def test_goodput_fades_in_silence() -> None:
    estimator = LinkEstimator()
    now_s = steady(estimator, 200)
    assert estimator.estimate(now_s + 10.0).goodput_bytes_s < 1.0 < estimator.estimate(now_s).goodput_bytes_s
    assert estimator.estimate(now_s) == estimator.estimate(now_s)
    assert isinstance(estimator.estimate(now_s), LinkEstimate)

"""How the link is estimated, when a request is sent again, and when a verifier is left alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from adahi_ros.gates.interface import LinkEstimate
from adahi_ros.robot.link_estimate import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    MISSES_UNTIL_OPEN,
    RETRANSMISSIONS,
    Breaker,
    LinkEstimator,
    ReplyTime,
)


def steady(estimator: LinkEstimator, requests: int, seed: int = 0) -> float:
    """Reply to requests of 500 bytes, 20 a second, 12 ms each with 0.3 ms of jitter; return the time."""
    draw = np.random.default_rng(seed)
    for index in range(requests):
        estimator.replied(index / 20, float(draw.normal(12.0, 0.3)), 500)
    return requests / 20


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


def taught(times_s: list[float]) -> ReplyTime:
    timeout = ReplyTime()
    for took_s in times_s:
        timeout.replied(took_s)
    return timeout


def test_each_retransmission_waits_twice_as_long_and_they_are_bounded() -> None:
    waits = [taught([0.013] * 50).wait_s(each) or 0.0 for each in range(RETRANSMISSIONS + 1)]
    np.testing.assert_allclose(waits, [*(waits[0] * 2.0 ** np.arange(RETRANSMISSIONS)), 0.0])


def test_a_verifier_that_became_slow_is_not_sent_everything_twice_for_ever() -> None:
    assert taught([0.013] * 50).expected_s < 0.060 < taught([0.013] * 50 + [0.060] * 50).expected_s


def opened(now_s: float = 0.0) -> Breaker:
    breaker = Breaker()
    for _ in range(MISSES_UNTIL_OPEN):
        assert not breaker.open
        breaker.missed(now_s)
    return breaker


def test_it_opens_after_several_misses_in_a_row() -> None:
    assert opened().open
    breaker = Breaker()
    for _ in range(10):
        for _ in range(MISSES_UNTIL_OPEN - 1):
            breaker.missed(0.0)
        assert not breaker.open
        breaker.replied()


def test_probes_become_rarer_up_to_a_longest_pause() -> None:
    breaker, probes = opened(5.0), []
    for tick in range(2000):
        now_s = 5.0 + 0.01 * tick
        if breaker.probe_due(now_s):
            breaker.probed(now_s)
            probes.append(now_s - 5.0)
    gaps = [after - before for before, after in pairwise([0.0, *probes])]
    assert gaps[0] == pytest.approx(FIRST_PAUSE_S, abs=0.02)
    assert all(after >= before - 0.02 for before, after in pairwise(gaps))
    assert max(gaps) == pytest.approx(LONGEST_PAUSE_S, abs=0.02)
    assert breaker.open


def test_a_reply_to_a_probe_closes_it_on_trial_and_one_miss_opens_it_again() -> None:
    breaker = opened()
    breaker.probed(0.0)
    breaker.probe_replied()
    assert not breaker.open
    assert breaker.on_trial
    breaker.missed(1.0)
    assert breaker.open
    assert not breaker.probe_due(1.0 + 3.9 * FIRST_PAUSE_S)
    assert breaker.probe_due(1.0 + 4.1 * FIRST_PAUSE_S)

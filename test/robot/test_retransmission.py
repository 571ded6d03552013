from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.robot.link_estimate import FIRST_S, MARGIN_S, RETRANSMISSIONS, RetransmissionTimeout


def taught(times_s: list[float]) -> RetransmissionTimeout:
    timeout = RetransmissionTimeout()
    for took_s in times_s:
        timeout.replied(took_s)
    return timeout


def wait_s(timeout: RetransmissionTimeout, retransmissions: int = 0) -> float:
    wait = timeout.wait_s(retransmissions)
    assert wait is not None
    return wait


def test_it_waits_a_little_longer_than_usual() -> None:
    assert wait_s(taught([0.013] * 50)) == pytest.approx(0.013 + MARGIN_S)


def test_what_varies_is_waited_for_longer() -> None:
    draw = np.random.default_rng(0)
    times_s = draw.normal(0.030, 0.005, size=500).tolist()
    late = np.mean([took_s > wait_s(taught(times_s)) for took_s in times_s])
    assert wait_s(taught(times_s)) > 0.030 + 2 * 0.005
    assert late < 0.02


def test_before_the_first_reply_it_has_a_guess() -> None:
    assert wait_s(RetransmissionTimeout()) == FIRST_S


def test_each_retransmission_waits_twice_as_long_and_they_are_bounded() -> None:
    timeout = taught([0.013] * 50)
    waits = [wait_s(timeout, retransmissions) for retransmissions in range(RETRANSMISSIONS)]
    np.testing.assert_allclose(waits, waits[0] * 2.0 ** np.arange(RETRANSMISSIONS))
    assert timeout.wait_s(RETRANSMISSIONS) is None


def test_a_verifier_that_became_slow_is_not_sent_everything_twice_for_ever() -> None:
    timeout = taught([0.013] * 50)
    assert wait_s(timeout) < 0.060
    for _ in range(50):
        timeout.replied(0.060)
    assert wait_s(timeout) > 0.060

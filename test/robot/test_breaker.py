from __future__ import annotations

from itertools import pairwise

import pytest

from adahi_ros.robot.link_estimate import FIRST_PAUSE_S, LONGEST_PAUSE_S, MISSES_UNTIL_OPEN, Breaker


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


def test_a_closed_one_wants_no_probes() -> None:
    assert not Breaker().probe_due(1e9)


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


def test_a_reply_ends_the_trial_and_forgets_everything() -> None:
    breaker = opened()
    breaker.probe_replied()
    breaker.replied()
    assert not breaker.on_trial
    for _ in range(MISSES_UNTIL_OPEN - 1):
        breaker.missed(2.0)
    assert not breaker.open
    breaker.missed(2.0)
    assert breaker.probe_due(2.0 + 1.01 * FIRST_PAUSE_S)

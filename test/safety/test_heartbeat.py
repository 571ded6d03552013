"""When the silence of heartbeats means that the client is gone."""

from __future__ import annotations

import pytest

from adahi_ros.safety.permission import Heartbeat

PERIOD_S = 0.1


@pytest.fixture
def heartbeat() -> Heartbeat:
    """It has begun at 100 s."""
    heartbeat = Heartbeat(1.0)
    heartbeat.begin(100.0, 100.0)
    return heartbeat


def silence(heartbeat: Heartbeat, until_s: float, from_s: float = 100.0) -> float | None:
    """Look every period until then; return the first silence."""
    for tick in range(1, 1 + round((until_s - from_s) / PERIOD_S)):
        found = heartbeat.silence_s(from_s + tick * PERIOD_S, PERIOD_S)
        if found is not None:
            return found
    return None


def test_silence_after_a_heartbeat_is_noticed(heartbeat: Heartbeat) -> None:
    heartbeat.received(0.0, 100.0)
    assert silence(heartbeat, 100.9) is None
    assert silence(heartbeat, 101.3, 100.9) == pytest.approx(1.0, abs=0.11)


def test_a_node_without_heartbeats_is_not_judged(heartbeat: Heartbeat) -> None:
    assert silence(heartbeat, 200.0) is None


def test_heartbeats_of_an_earlier_activation_do_not_count(heartbeat: Heartbeat) -> None:
    heartbeat.received(0.0, 100.0)
    heartbeat.end()
    heartbeat.begin(100.2, 100.2)
    assert silence(heartbeat, 110.0, 100.2) is None


def test_a_heartbeat_just_before_activation_counts_and_an_older_does_not(heartbeat: Heartbeat) -> None:
    heartbeat.end()
    heartbeat.received(0.0, 100.1)
    heartbeat.begin(100.2, 100.2)
    assert silence(heartbeat, 101.5, 100.2) is not None
    heartbeat.end()
    heartbeat.received(0.0, 102.0)
    heartbeat.begin(103.5, 103.5)
    assert silence(heartbeat, 110.0, 103.5) is None


def test_a_heartbeat_that_waited_counts_from_when_it_arrived(heartbeat: Heartbeat) -> None:
    assert silence(heartbeat, 105.0) is None
    heartbeat.received(0.0, 105.0)
    heartbeat.received(0.9, 105.0)
    assert silence(heartbeat, 105.9, 105.0) is None
    heartbeat.received(1.1, 105.95)
    assert silence(heartbeat, 106.3, 105.9) is not None


def test_a_clock_that_was_set_back_does_not_prolong_a_heartbeat(heartbeat: Heartbeat) -> None:
    heartbeat.received(-3600.0, 100.0)
    assert silence(heartbeat, 101.3) is not None


@pytest.mark.parametrize("waited", [False, True])
def test_a_client_that_is_killed_in_a_long_activation_is_noticed(waited: bool) -> None:
    heartbeat = Heartbeat(1.0)
    if not waited:
        heartbeat.received(0.0, 99.9)
    heartbeat.begin(100.0, 105.0)
    if waited:  # the node was busy
        heartbeat.received(5.1, 105.0)
    assert silence(heartbeat, 105.9, 105.0) is None
    assert silence(heartbeat, 106.3, 105.9) is not None


def test_a_heartbeat_from_long_before_the_activation_does_not_count(heartbeat: Heartbeat) -> None:
    heartbeat.received(1.3, 100.2)
    assert silence(heartbeat, 110.0) is None


def test_irregular_looks_do_not_prolong_a_silence(heartbeat: Heartbeat) -> None:
    heartbeat.received(0.0, 100.0)
    now_s, found = 100.0, None
    while found is None:
        now_s += 0.05 if round(now_s * 20) % 4 == 0 else 0.15
        found = heartbeat.silence_s(now_s, PERIOD_S)
    assert found < 1.2


def test_a_stalled_process_is_no_silence(heartbeat: Heartbeat) -> None:
    heartbeat.received(0.0, 100.0)
    assert heartbeat.silence_s(110.0, PERIOD_S) is None
    assert silence(heartbeat, 111.3, 110.0) is not None


def test_a_timeout_of_0_disables_it() -> None:
    heartbeat = Heartbeat(0.0)
    heartbeat.begin(100.0, 100.0)
    heartbeat.received(0.0, 100.0)
    assert silence(heartbeat, 200.0) is None


def test_a_node_that_does_not_act_is_not_judged(heartbeat: Heartbeat) -> None:
    heartbeat.received(0.0, 100.0)
    heartbeat.end()
    heartbeat.received(0.0, 100.1)
    assert silence(heartbeat, 110.0, 100.1) is None


def test_an_older_heartbeat_takes_nothing_from_a_newer_one(heartbeat: Heartbeat) -> None:
    heartbeat.received(0.0, 100.5)
    heartbeat.received(0.9, 100.6)
    assert silence(heartbeat, 101.4) is None

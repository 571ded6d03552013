"""When the silence of heartbeats means that the client is gone."""

from __future__ import annotations

import pytest

from adahi_ros.safety.permission import LONGEST_WAIT_S, Heartbeat

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
    assert silence(heartbeat, 101.4, 100.9) == pytest.approx(1.2, abs=0.11)


def test_a_node_without_heartbeats_is_not_judged(heartbeat: Heartbeat) -> None:
    assert silence(heartbeat, 200.0) is None


def test_heartbeats_of_an_earlier_activation_do_not_count(heartbeat: Heartbeat) -> None:
    heartbeat.received(0.0, 100.0)
    heartbeat.end(100.1)
    heartbeat.begin(100.2, 100.2)
    assert silence(heartbeat, 110.0, 100.2) is None


def test_a_heartbeat_just_before_activation_counts_and_an_older_does_not(heartbeat: Heartbeat) -> None:
    heartbeat.end(100.0)
    heartbeat.received(0.0, 100.1)
    heartbeat.begin(100.2, 100.2)
    assert silence(heartbeat, 101.5, 100.2) is not None
    heartbeat.end(101.5)
    heartbeat.received(0.0, 102.0)
    heartbeat.begin(102.1 + LONGEST_WAIT_S, 102.1 + LONGEST_WAIT_S)
    assert silence(heartbeat, 120.0, 112.1) is None


def test_a_client_that_is_killed_while_its_activation_waits_is_noticed(heartbeat: Heartbeat) -> None:
    heartbeat.end(100.0)
    heartbeat.received(0.0, 100.1)
    heartbeat.begin(105.0, 105.1)
    assert silence(heartbeat, 106.4, 105.1) is not None


def test_a_heartbeat_that_waited_since_the_former_goal_does_not_count(heartbeat: Heartbeat) -> None:
    heartbeat.end(101.0)
    heartbeat.received(0.5, 101.2)
    heartbeat.begin(101.3, 101.3)
    assert silence(heartbeat, 110.0, 101.3) is None


def test_a_heartbeat_that_waited_counts_from_when_it_arrived(heartbeat: Heartbeat) -> None:
    assert silence(heartbeat, 105.0) is None
    heartbeat.received(0.0, 105.0)
    heartbeat.received(0.9, 105.0)
    assert silence(heartbeat, 105.9, 105.0) is None
    heartbeat.received(1.1, 105.95)
    assert silence(heartbeat, 106.4, 105.9) is not None


def test_a_clock_that_was_set_back_does_not_prolong_a_heartbeat(heartbeat: Heartbeat) -> None:
    heartbeat.received(-3600.0, 100.0)
    assert silence(heartbeat, 101.4) is not None


@pytest.mark.parametrize("waited", [False, True])
def test_a_client_that_is_killed_in_a_long_activation_is_noticed(waited: bool) -> None:
    heartbeat = Heartbeat(1.0)
    if not waited:
        heartbeat.received(0.0, 99.9)
    heartbeat.begin(100.0, 105.0)
    if waited:  # the node was busy
        heartbeat.received(5.1, 105.0)
    assert silence(heartbeat, 105.9, 105.0) is None
    assert silence(heartbeat, 106.4, 105.9) is not None


@pytest.mark.parametrize("between_s", [0.05, 0.15, 0.27, 0.45, 0.9, 2.0])
def test_looks_that_are_far_apart_prolong_a_silence_by_two_at_most(
    heartbeat: Heartbeat, between_s: float
) -> None:
    heartbeat.received(0.0, 100.0)
    now_s = 100.0
    while heartbeat.silence_s(now_s, PERIOD_S) is None:
        now_s += between_s
    assert now_s <= 101.0 + PERIOD_S + 2 * between_s + 1e-6


def test_a_second_stall_receives_first_as_well(heartbeat: Heartbeat) -> None:
    heartbeat.received(0.0, 100.0)
    assert heartbeat.silence_s(101.2, PERIOD_S) is None
    heartbeat.received(0.0, 101.21)
    assert heartbeat.silence_s(102.36, PERIOD_S) is None


def test_a_process_that_stood_still_receives_first(heartbeat: Heartbeat) -> None:
    heartbeat.received(0.0, 100.0)
    assert heartbeat.silence_s(110.0, PERIOD_S) is None
    heartbeat.received(0.0, 110.0)
    assert silence(heartbeat, 110.9, 110.0) is None
    assert silence(heartbeat, 111.4, 110.9) is not None


def test_a_timeout_of_0_disables_it() -> None:
    heartbeat = Heartbeat(0.0)
    heartbeat.begin(100.0, 100.0)
    heartbeat.received(0.0, 100.0)
    assert silence(heartbeat, 200.0) is None


def test_a_node_that_does_not_act_is_not_judged(heartbeat: Heartbeat) -> None:
    heartbeat.received(0.0, 100.0)
    heartbeat.end(100.0)
    heartbeat.received(0.0, 100.1)
    assert silence(heartbeat, 110.0, 100.1) is None


def test_an_older_heartbeat_takes_nothing_from_a_newer_one(heartbeat: Heartbeat) -> None:
    heartbeat.received(0.0, 100.5)
    heartbeat.received(0.9, 100.6)
    assert silence(heartbeat, 101.4) is None


def test_a_heartbeat_of_the_former_goal_that_comes_late_does_not_count(heartbeat: Heartbeat) -> None:
    heartbeat.end(101.0)
    heartbeat.begin(101.3, 101.3)
    heartbeat.received(0.5, 101.4)
    assert silence(heartbeat, 110.0, 101.4) is None

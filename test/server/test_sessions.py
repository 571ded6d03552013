"""Two robots of one name are told from one that was restarted."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.server.service import LATE_S, SHARED_S, Sessions

A, B, C = 7, 8, 9


def received(sessions: Sessions, *requests: tuple[int, float], name: str = "robot") -> list[bool]:
    return [sessions.received(name, session, now_s) for session, now_s in requests]


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0.0, 1e4)), max_size=30))
def test_one_robot_however_often_restarted_is_one(runs: list[tuple[int, float]]) -> None:
    sessions, now_s = Sessions(), 0.0
    for session, (requests, pause_s) in enumerate(runs):
        for _ in range(requests):
            now_s += 0.05
            assert not sessions.received("robot", session, now_s)
        now_s += pause_s
    assert not sessions.shared(now_s)


@pytest.mark.parametrize("robots", [2, 3, 5])
def test_robots_of_one_name_are_noticed_within_seconds(robots: int) -> None:
    sessions = Sessions()
    for tick in range(2000):
        now_s = 0.05 * tick
        for session in range(robots):
            sessions.received("robot", session, now_s)
        sessions.received("other", 0, now_s)
        if now_s < 0.99 * LATE_S:
            assert not sessions.shared(now_s)
        if now_s > 1.01 * LATE_S:
            assert set(sessions.shared(now_s)) == {"robot"}
    assert sessions.shared(now_s)["robot"] >= 50
    assert not sessions.shared(now_s + 1.1 * SHARED_S)


def test_a_packet_that_comes_late_is_no_other_robot() -> None:
    sessions = Sessions()
    late = received(sessions, (A, 0.0), (B, 5.0), (A, 5.0 + 0.9 * LATE_S), (B, 6.0), (B, 60.0))
    assert not any(late)


def test_the_one_that_is_left_of_two_is_one() -> None:
    sessions = Sessions()
    received(sessions, (A, 0.0), (B, 5.0), (A, 10.0))
    assert not any(received(sessions, *((A, 10.0 + number) for number in range(100))))


def test_what_is_remembered_is_bounded_and_a_robot_that_asks_is() -> None:
    sessions = Sessions()
    received(sessions, (A, 0.0), (B, 0.0))
    tracemalloc.start()
    try:
        for number in range(20_000):
            sessions.received(f"{number:064d}", number, 1.0)
            sessions.received("restless", number, 1.0 + 2.0 * number)
            if number % 100 == 0:
                sessions.received("robot", B, 1.0)
        assert tracemalloc.get_traced_memory()[0] < 2_000_000
    finally:
        tracemalloc.stop()
    assert received(sessions, (A, 5.0)) == [True]

"""A robot that asks too often is told when to come again, and nobody else is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.server.admission import ABSENT_S, BURST_S, RETRY_MOST_S, ROBOTS_KEPT, SETTLED_S, Admission


@given(
    st.floats(1.0, 200.0),
    st.lists(st.floats(0.0, 0.2), min_size=1, max_size=200),
)
def test_no_robot_is_let_in_more_often_than_its_quota_and_its_burst(
    quota_hz: float, pauses: list[float]
) -> None:
    admission, now_s, admitted = Admission(quota_hz), 0.0, 0
    for pause in pauses:
        now_s += pause
        refusal = admission.over_quota("arm", now_s)
        admitted += refusal is None
        if refusal is not None:
            assert 0.0 < refusal.retry_after_s <= 1.0 / quota_hz
            assert "robot_id" in refusal.why
    assert admitted <= 1 + max(1.0, BURST_S * quota_hz) + quota_hz * now_s


def test_a_robot_that_asks_too_early_is_refused_without_a_second_warning() -> None:
    admission = Admission(10.0)
    while (refusal := admission.over_quota("arm", 0.0)) is None:
        pass
    assert not refusal.repeated
    early = admission.over_quota("arm", 0.5 * refusal.retry_after_s)
    assert early is not None
    assert early.repeated
    other = [admission.over_quota("leg", 0.0) for _ in range(6)][-1]
    assert other is not None
    assert not other.repeated
    assert admission.over_quota("arm", 1.001 * refusal.retry_after_s) is None
    late = admission.over_quota("arm", 1.002 * refusal.retry_after_s)
    assert late is not None
    assert not late.repeated


def test_without_a_quota_everybody_is_let_in() -> None:
    admission = Admission(0.0)
    assert all(admission.over_quota("arm", 0.0) is None for _ in range(1000))


def test_names_that_no_one_uses_any_more_are_forgotten() -> None:
    admission = Admission(1.0)
    for number in range(3 * ROBOTS_KEPT):
        admission.over_quota(f"robot {number}", 0.0)
    assert len(admission._buckets) == ROBOTS_KEPT


def test_when_to_come_again_follows_how_fast_requests_are_served() -> None:
    admission = Admission(0.0)
    for _ in range(200):
        admission.served([b"arm"] * 10, 0.05, 0.0)
    assert admission.full(100).retry_after_s == pytest.approx(0.25, rel=1e-3)
    assert admission.full(10**6).retry_after_s == RETRY_MOST_S


@pytest.mark.parametrize("times", [1, 4])
def test_names_that_change_give_no_quota_however_fast_their_replies_are(times: int) -> None:
    """Each name is used so many times, and never again."""
    admission, seconds, admitted = Admission(10.0), 20.0, 0
    for number in range(round(seconds * 200)):
        now_s, name = number / 200, f"name {number // times}"
        if admission.over_quota(name, now_s, b"client") is None:
            admission.replied(b"client", name, True, now_s)
            admitted += 1
    assert admitted <= BURST_S * 10.0 + 10.0 * seconds + 1
    assert admission.robots(b"client", seconds) == 1


def fleet(
    admission: Admission,
    robots: int,
    from_s: float,
    to_s: float,
    in_time: bool = True,
    others: Sequence[bytes] = (),
) -> int:
    """Let robots of one client send ten requests per second each; return how many are accepted."""
    accepted = 0
    for number in range(round(10 * robots * (to_s - from_s))):
        now_s, name = from_s + number / (10 * robots), f"robot {number % robots}"
        if admission.over_quota(name, now_s, b"fleet") is None:
            admission.served([b"fleet", *others], 0.001, now_s + 0.01)
            admission.replied(b"fleet", name, in_time, now_s + 0.01)
            accepted += 1
    return accepted


def test_a_client_loses_the_quota_of_robots_with_late_replies() -> None:
    admission = Admission(20.0)
    fleet(admission, 40, 0.0, 10.0)
    fleet(admission, 40, 10.0, 12.0, False, [b"arm"])
    assert admission.robots(b"fleet", 12.0) == 1
    assert fleet(admission, 40, 12.0, 14.0, False, [b"arm"]) <= 2 * 20 + 1
    fleet(admission, 40, 14.0, 16.0, others=[b"arm"])
    assert admission.robots(b"fleet", 16.0) == 40


def test_a_client_alone_keeps_its_quota_where_the_server_is_too_slow() -> None:
    """There is no other to protect, and with fewer requests more of its robots would lack a plan."""
    admission = Admission(20.0)
    fleet(admission, 40, 0.0, 4.0, in_time=False)
    assert admission.robots(b"fleet", 4.0) == 40


def test_robots_that_are_gone_give_their_client_no_quota() -> None:
    admission = Admission(20.0)
    fleet(admission, 40, 0.0, 2.0)
    assert admission.robots(b"fleet", 2.0 + ABSENT_S + 0.1) == 1
    assert not admission._robots
    assert not admission._counts


def test_no_flood_of_names_takes_more_memory() -> None:
    admission = Admission(20.0)
    for number in range(2 * ROBOTS_KEPT):
        for at_s in (0.0, SETTLED_S):
            admission.robots("other", at_s)
            admission.replied(f"client {number}", "robot", True, at_s)
    admission.robots("other", SETTLED_S)
    assert len(admission._robots) == len(admission._counts) == ROBOTS_KEPT


def test_a_client_of_many_robots_is_due_as_soon_as_one_of_few() -> None:
    admission = Admission(20.0)
    fleet(admission, 40, 0.0, 2.0)
    admission.served([b"fleet"] * 40 + [b"arm"], 0.41, 3.0)
    assert admission.used_s(b"fleet", 3.0) == pytest.approx(admission.used_s(b"arm", 3.0), rel=0.3)


def test_what_a_sender_used_is_counted_and_forgotten() -> None:
    admission = Admission(10.0)
    admission.served([b"flood", b"flood", b"flood", b"arm"], 0.4, 1.0)
    assert admission.used_s(b"flood", 1.0) == pytest.approx(0.3)
    assert admission.used_s(b"arm", 1.0) == pytest.approx(0.1)
    assert admission.used_s(b"leg", 1.0) == 0.0
    assert admission.used_s(b"flood", 10.0) < 1e-3

"""A robot that knows several verifiers: whom it asks, when, and whose reply it takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import RequestFault
from adahi_ros.protocol.window import WHOLE
from adahi_ros.robot.link_estimate import FIRST_S, LONGEST_PAUSE_S
from adahi_ros.robot.session import VerifierState
from adahi_ros.robot.transport import HEDGES
from adahi_ros.robot.verifier_endpoint import ENOUGH
from test.robot.hedging.conftest import (
    PERIOD_S,
    QUICK,
    SLOW,
    HedgedRobot,
    MakeHedged,
    bytes_about,
    requests_to,
)

# Whom it asks, and when


def test_a_reply_that_is_not_late_has_no_hedge(robot: HedgedRobot) -> None:
    robot.steps(40)
    assert all(record.verified for record in robot.records)
    assert (requests_to(robot.link), requests_to(robot.backup_link)) == (40, 0)


def test_another_verifier_is_queried_once_a_reply_is_later_than_usual(robot: HedgedRobot) -> None:
    robot.steps(ENOUGH)
    late_s = 2 * QUICK[0]
    robot.verifier.replies = False
    robot.see(1, ENOUGH)
    robot.pass_time(0.99 * late_s)
    assert requests_to(robot.backup_link) == 0
    robot.pass_time(PERIOD_S)
    record = robot.records[-1]
    assert record.verified
    assert record.verify_ms == pytest.approx(1e3 * (late_s + 2 * QUICK[0]))
    assert requests_to(robot.backup_link) == 1
    assert record.request_bytes == bytes_about(ENOUGH, robot.link, robot.backup_link)
    assert (robot.figure("backup.hedges"), robot.figure("backup.answers")) == (1, 1)


def test_before_replies_are_measured_another_is_queried_after_a_guess(robot: HedgedRobot) -> None:
    robot.verifier.replies = False
    robot.walk(range(1), PERIOD_S)
    assert robot.records[-1].verify_ms == pytest.approx(1e3 * (FIRST_S + 2 * QUICK[0]))


def test_at_once_asks_all_and_takes_the_first_reply(make_hedged: MakeHedged) -> None:
    robot = make_hedged("at_once").connect()
    robot.link.delay_s = SLOW
    robot.steps(10)
    assert (requests_to(robot.link), requests_to(robot.backup_link)) == (10, 10)
    assert [record.verify_ms for record in robot.records] == pytest.approx([2e3 * QUICK[0]] * 10)
    assert (robot.figure("backup.answers"), robot.figure("first.spare")) == (10, 10)
    assert robot.session.outcomes.total() == 10


def test_off_asks_one_at_a_time_and_the_backup_where_the_first_is_dead(make_hedged: MakeHedged) -> None:
    robot = make_hedged("off").connect()
    robot.link.delay_s = SLOW
    robot.steps(20)
    assert requests_to(robot.backup_link) == 0
    robot.verifier.replies = False
    robot.steps(20, first=20)
    assert 0 < sum(not record.verified for record in robot.records) <= 10
    assert all(record.verified for record in robot.records[-10:])
    robot.verifier.replies = True
    requested = requests_to(robot.backup_link)
    robot.steps(20, first=40)
    assert requests_to(robot.backup_link) <= requested + 5
    assert all(record.verified for record in robot.records[-20:])


def test_a_first_that_is_back_is_found_by_probes(robot: HedgedRobot) -> None:
    robot.steps(20)
    robot.verifier.replies = False
    robot.steps(20, first=20)
    robot.verifier.replies = True
    robot.pass_time(1.0)
    robot.backup.replies = False
    robot.steps(20, first=40)
    assert all(record.verified for record in robot.records)
    assert robot.texts[-1] == "verifier first is asked first from now on"


def test_the_quicker_one_is_queried_first_once_it_is_known(robot: HedgedRobot) -> None:
    robot.link.delay_s = (0.02, 0.04)
    robot.steps(100)
    assert robot.texts == ["verifier backup is asked first from now on"]
    assert [record.verify_ms for record in robot.records[-10:]] == pytest.approx([2e3 * QUICK[0]] * 10)


def test_a_request_that_is_sent_again_goes_to_all(robot: HedgedRobot) -> None:
    robot.loop.deadline_s = 1.0
    robot.steps(ENOUGH)
    robot.verifier.replies = robot.backup.replies = False
    before = requests_to(robot.link), requests_to(robot.backup_link)
    robot.see(1, ENOUGH)
    robot.pass_time(1.5)
    assert robot.records[-1].reason is Reason.DEADLINE
    sent = requests_to(robot.link) - before[0], requests_to(robot.backup_link) - before[1]
    assert min(sent) >= 3
    assert robot.records[-1].request_bytes == bytes_about(ENOUGH, robot.link, robot.backup_link)


# Whose reply it takes


@pytest.mark.parametrize(
    "changes",
    [
        {"status": int(RequestFault.TARGET_UNAVAILABLE), "message": "broken"},
        {"status": int(RequestFault.BUSY), "retry_after_s": 1.0},
        {"status": int(RequestFault.UNKNOWN_TARGET), "message": "gone"},
        {"actions": (1.0,)},
        {"actions": (1e30, 1e30)},
        {"fault": "too long"},
    ],
)
@pytest.mark.parametrize("hedge", HEDGES)
def test_a_refusal_is_no_reply_while_another_may_answer(
    make_hedged: MakeHedged, hedge: str, changes: dict[str, Any]
) -> None:
    robot = make_hedged(hedge).connect()
    robot.verifier.changes = changes
    robot.steps(5)
    assert [record.reason for record in robot.records] == [Reason.NONE] * 5
    assert all(record.verified for record in robot.records)
    assert robot.session.link is VerifierState.READY
    assert robot.session.busy_until_s <= robot.link.now_s


def test_where_all_refuse_the_robot_learns_why(robot: HedgedRobot) -> None:
    robot.verifier.changes = robot.backup.changes = {
        "status": int(RequestFault.TARGET_UNAVAILABLE),
        "message": "broken",
    }
    robot.steps(1)
    assert (robot.records[0].reason, robot.records[0].message) == (Reason.REFUSED, "broken")
    assert (requests_to(robot.link), requests_to(robot.backup_link)) == (1, 1)


def test_where_all_are_busy_they_are_left_alone_until_the_first_is_free(robot: HedgedRobot) -> None:
    busy = {"status": int(RequestFault.BUSY)}
    robot.verifier.changes = {**busy, "retry_after_s": 1.5}
    robot.backup.changes = {**busy, "retry_after_s": 0.5}
    robot.steps(1)
    assert robot.records[0].reason is Reason.BUSY
    assert robot.session.busy_until_s > robot.link.now_s
    robot.backup.changes = {}
    robot.pass_time(0.4)
    assert robot.session.busy_until_s <= robot.link.now_s
    robot.steps(2, first=1)
    assert all(record.verified for record in robot.records[1:])
    assert requests_to(robot.link) == 1


def test_one_that_is_busy_gets_no_request_meanwhile(robot: HedgedRobot) -> None:
    robot.verifier.changes = {"status": int(RequestFault.BUSY), "retry_after_s": 1.0}
    robot.steps(4)
    assert requests_to(robot.link) == 1


def test_one_that_is_busy_and_then_gone_ends_nothing_but_the_request(robot: HedgedRobot) -> None:
    robot.link.delay_s = (0.04, 0.04)
    robot.backup_link.present = False
    robot.loop.deadline_s = 1.0
    robot.steps(ENOUGH)
    robot.verifier.changes = {"status": int(RequestFault.BUSY), "retry_after_s": 1.0}
    robot.see(1, ENOUGH)
    robot.link.present = False
    robot.pass_time(PERIOD_S)
    assert robot.records[-1].reason is Reason.BUSY
    assert robot.session.link is VerifierState.ABSENT


def test_where_all_copies_find_it_busy_the_robot_knows_before_its_deadline(robot: HedgedRobot) -> None:
    robot.steps(ENOUGH)
    robot.verifier.changes = {"status": int(RequestFault.BUSY), "retry_after_s": 0.1}
    robot.backup_link.present = False
    robot.loop.deadline_s = 1.0
    robot.link.delay_s = (0.05, 0.05)
    robot.see(1, ENOUGH)
    robot.pass_time(1.2)
    assert requests_to(robot.link) > ENOUGH + 1
    assert robot.records[-1].reason is Reason.BUSY
    assert robot.records[-1].total_ms < 500.0


def test_nothing_is_executed_twice_or_late_across_two_bad_links(make_hedged: MakeHedged) -> None:
    for hedge in HEDGES:
        robot = make_hedged(hedge, seed=3)
        robot.connect()
        for link in (robot.link, robot.backup_link):
            link.loss, link.doubling, link.delay_s = 0.2, 0.2, (0.001, 0.08)
        robot.steps(200)
        stamps = [stamp for stamp, _ in robot.commands.sent]
        assert stamps == sorted(set(stamps))
        assert len(robot.records) == 200
        for record in robot.records:
            assert record.total_ms <= 1e3 * robot.loop.deadline_s + 1e-6
            if record.verified:
                assert record.action == (float(np.float32(record.stamp_ns / 1024.0)),) * 2
        assert max(robot.session.outcomes.values()) == 1
        robot.pass_time(5.0)
        robot.see(2, 0)
        robot.pass_time(5.0)
        assert not any(end.under_way for end in robot.hedged._ends)


@pytest.mark.parametrize("honest_s", [0.015, 0.04])
@pytest.mark.parametrize("before", [0, 20])
@pytest.mark.parametrize("hedge", ["late", "at_once", "off"])
def test_a_quick_verifier_with_absurd_plans_is_left_for_the_honest_one(
    make_hedged: MakeHedged, hedge: str, before: int, honest_s: float
) -> None:
    """Its plans are finite, but far beyond what the robot may do; before, it may have been honest."""
    robot = make_hedged(hedge).connect()
    robot.link.delay_s = (0.001, 0.001)
    robot.backup_link.delay_s = (honest_s, honest_s)
    robot.steps(before)
    robot.verifier.changes = {"actions": (1e30, 1e30)}
    robot.steps(60, first=before)
    assert all(record.verified for record in robot.records)
    asked = requests_to(robot.link)
    robot.steps(60, first=before + 60)
    assert requests_to(robot.link) - asked <= 60 * PERIOD_S / LONGEST_PAUSE_S + 1
    assert robot.texts[0] == "verifier first sends bad replies: action[0]: 1e+30, must be from -12 to 15"
    assert not any(text.endswith("is back") for text in robot.texts)
    robot.verifier.changes = {}
    robot.steps(60, first=before + 120)
    assert "verifier first is back" in robot.texts
    assert all(record.verified for record in robot.records)


def test_nothing_is_learned_of_the_link_from_a_bad_reply(robot: HedgedRobot) -> None:
    robot.link.delay_s = robot.backup_link.delay_s = SLOW
    robot.steps(20)
    known = robot.session.estimate(robot.link.now_s), robot.session.expected_s
    robot.link.delay_s = robot.backup_link.delay_s = (0.001, 0.001)
    robot.verifier.changes = robot.backup.changes = {"actions": (1e30, 1e30)}
    robot.steps(20, first=20)
    now = robot.session.estimate(robot.link.now_s)
    assert (replace(now, goodput_bytes_s=known[0].goodput_bytes_s), robot.session.expected_s) == known
    assert {record.reason for record in robot.records[20:]} == {Reason.BAD_REPLY}


# Windows


def test_each_is_sent_what_it_lacks_of_a_window(robot: HedgedRobot) -> None:
    robot.steps(3)
    robot.verifier.replies = False
    robot.steps(2, first=3)
    (_, whole), (_, short) = robot.backup_link.updates
    assert whole.base == WHOLE != short.base
    robot.verifier.replies = True
    robot.steps(1, first=5)
    assert all(record.verified for record in robot.records)
    assert robot.figure("backup.windows_resent") == robot.figure("first.windows_resent") == 0


def test_a_backup_that_has_lost_its_windows_is_sent_the_whole_one(robot: HedgedRobot) -> None:
    robot.verifier.replies = False
    robot.steps(2)
    robot.backup.restart()
    robot.steps(1, first=2)
    (_, refused), (_, resent) = robot.backup_link.updates[-2:]
    assert refused.base != WHOLE == resent.base
    assert robot.records[-1].verified
    assert robot.figure("backup.windows_resent") == 1
    assert robot.records[-1].request_bytes == bytes_about(2, robot.link, robot.backup_link)

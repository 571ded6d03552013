"""A verifier's notice makes the robot request at once; it never moves the robot."""

from __future__ import annotations

import pytest

from adahi_ros.protocol.notice import Notice
from adahi_ros.protocol.records import Reason
from adahi_ros.robot.assignments import REFUSED_MOST, AssignmentWatch
from adahi_ros.robot.diagnosis import Diagnosis
from test.robot.conftest import MakeRobot, Robot
from test.robot.test_diagnosis import report

HORIZON = 8
START_NS, LATER_NS = 1_000, 2_000


def followed(watch: AssignmentWatch, assignment: int) -> AssignmentWatch:
    """Have a robot use a reply."""
    assert not watch.refusal(assignment)
    watch.replied(assignment)
    return watch


def test_a_new_assignment_counts_once() -> None:
    watch = AssignmentWatch()
    assert not watch.noticed(Notice(START_NS, 0))
    assert watch.noticed(Notice(START_NS, 1, 1))
    assert watch.outdated
    assert not watch.noticed(Notice(START_NS, 1, 1))
    assert not followed(watch, 1).outdated


def test_older_notices_and_those_about_other_robots_change_nothing() -> None:
    watch = AssignmentWatch()
    watch.noticed(Notice(START_NS, 5, 5))
    followed(watch, 5)
    assert not watch.noticed(Notice(START_NS, 3, 3))
    assert not watch.noticed(Notice(START_NS, 6, 5))
    assert not watch.noticed(Notice(START_NS - 1, 9, 9))
    assert (watch.own, watch.outdated) == (5, False)


def test_a_reply_that_is_older_than_the_notice_is_refused() -> None:
    watch = AssignmentWatch()
    watch.noticed(Notice(START_NS, 2, 2))
    assert watch.refusal(0).startswith("assignment: 0, must be 2")
    assert watch.refusal(1)
    assert not watch.refusal(2)


def test_a_reply_that_is_newer_makes_the_late_notice_void() -> None:
    watch = AssignmentWatch()
    watch.noticed(Notice(START_NS, 2, 2))
    followed(watch, 3)
    assert not watch.noticed(Notice(START_NS, 3, 3))
    assert not watch.outdated


def test_a_restart_of_the_verifier_ends_its_assignments() -> None:
    watch = AssignmentWatch()
    watch.noticed(Notice(START_NS, 5, 5))
    followed(watch, 5)
    assert watch.noticed(Notice(LATER_NS, 0))
    assert not followed(watch, 0).outdated
    assert watch.noticed(Notice(LATER_NS, 1, 1))


def test_a_restart_with_the_same_revision_is_a_change() -> None:
    watch = AssignmentWatch()
    watch.noticed(Notice(START_NS, 1, 1))
    followed(watch, 1)
    assert watch.noticed(Notice(LATER_NS, 1, 1))
    assert watch.outdated
    assert not followed(watch, 1).outdated


@pytest.fixture
def ahead(make_robot: MakeRobot) -> Robot:
    """A robot that executes plans, and waits for none."""
    robot = make_robot("age", plans=HORIZON)
    robot.choose("age", 6.0)
    return robot.connect()


@pytest.fixture
def waiting(make_robot: MakeRobot) -> Robot:
    """A robot that executes plans, and waits for the reply to a request."""
    robot = make_robot("age", plans=HORIZON, waits=True)
    robot.choose("age", 6.0)
    return robot.connect()


@pytest.mark.parametrize("kind", ["ahead", "waiting"])
def test_a_notice_drops_plans_and_requests_with_the_next_observation(
    kind: str, request: pytest.FixtureRequest
) -> None:
    robot: Robot = request.getfixturevalue(kind)
    robot.walk(range(3))
    before = len(robot.link.updates)
    robot.verifier.changes = {"assignment": 1}
    robot.loop.notice(Notice(START_NS, 1, 1))
    robot.walk(range(3, 5))
    assert [each.step for each, _ in robot.link.updates[before:]] == [3]
    assert robot.records[-1].plan_age == 1
    robot.loop.notice(Notice(START_NS, 1, 1))
    robot.walk(range(5, 6))
    assert len(robot.link.updates) == before + 1


@pytest.mark.parametrize("kind", ["ahead", "waiting"])
def test_a_reply_of_the_verifier_before_its_restart_is_dropped(
    kind: str, request: pytest.FixtureRequest
) -> None:
    """Its revision may be the same as, or above, that of the restarted verifier."""
    robot: Robot = request.getfixturevalue(kind)
    robot.link.delay_s = (0.01, 0.01)
    robot.loop.notice(Notice(START_NS, 2, 2))
    robot.verifier.changes = {"assignment": 2}
    robot.see(1, 0)
    robot.verifier.changes = {"assignment": 1}
    robot.loop.notice(Notice(LATER_NS, 1, 1))
    robot.pass_time(0.04)
    robot.walk(range(1, 4))
    assert robot.loop.assignments is not None
    assert robot.loop.assignments.followed == 1
    assert not robot.loop.assignments.outdated


@pytest.mark.parametrize("kind", ["ahead", "waiting"])
def test_diagnostics_count_notices_and_the_requests_that_they_cause(
    kind: str, request: pytest.FixtureRequest
) -> None:
    robot: Robot = request.getfixturevalue(kind)
    condition = Diagnosis(robot.link.now_s)
    robot.walk(range(2))
    assert not [name for name in report(condition, robot)[2] if name.startswith("assignments.")]
    robot.loop.notice(Notice(START_NS, 0))
    robot.verifier.changes = {"assignment": 1}
    for notice in (Notice(START_NS, 1, 1), Notice(START_NS, 2, 1)):
        robot.loop.notice(notice)
        robot.walk(range(2, 4) if notice.revision == 1 else range(4, 6))
    figures = report(condition, robot)[2]
    counts = [figures[f"assignments.{name}"] for name in ("revision", "notices", "requests")]
    assert counts == [1, 3, 1]
    robot.loop.stop()
    robot.connect()
    robot.walk(range(1))
    assert report(condition, robot)[2]["assignments.notices"] == 0


@pytest.mark.parametrize("kind", ["ahead", "waiting"])
def test_a_flood_of_notices_makes_one_request_in_flight(kind: str, request: pytest.FixtureRequest) -> None:
    robot: Robot = request.getfixturevalue(kind)
    robot.walk(range(3))
    before = len(robot.link.updates)
    robot.link.delay_s = (0.5, 0.5)
    robot.see(1, 3)
    for revision in range(1, 100):
        robot.loop.notice(Notice(START_NS, revision, revision))
        if revision == 1 and kind == "ahead":
            robot.see(1, 4)
    assert len(robot.link.updates) <= before + 2
    assert len(robot.loop._session._pending) <= 1


def test_a_reply_with_an_older_assignment_is_requested_again(ahead: Robot) -> None:
    ahead.walk(range(2))
    before = len(ahead.link.updates)
    ahead.loop.notice(Notice(START_NS, 1, 1))
    ahead.walk(range(2, 5))
    assert len(ahead.link.updates) > before + 1
    refused = [each for each in ahead.records if each.reason is Reason.SUPERSEDED]
    assert refused[0].message.startswith("assignment: 0, must be 1")
    assert not ahead.records[-1].planned_action
    ahead.verifier.changes = {"assignment": 1}
    ahead.walk(range(5, 7))
    assert ahead.records[-1].planned_action


def test_an_assigned_robot_needs_no_instruction_of_its_own(make_robot: MakeRobot) -> None:
    robot = make_robot("age", plans=HORIZON)
    robot.verifier.describe_otherwise(instruction=True)
    robot.connect()
    robot.walk(range(2))
    assert not robot.link.updates
    robot.verifier.changes = {"assignment": 1}
    robot.loop.notice(Notice(START_NS, 1, 1))
    robot.walk(range(2, 4))
    assert robot.records[-1].planned_action


def test_a_notice_stays_valid_while_the_robot_is_inactive(ahead: Robot) -> None:
    ahead.loop.stop()
    ahead.loop.notice(Notice(START_NS, 1, 1))
    ahead.connect()
    ahead.walk(range(1))
    assert ahead.loop.assignments is not None
    assert ahead.loop.assignments.own == 1


@pytest.mark.parametrize("kind", ["ahead", "waiting"])
def test_a_reply_before_its_notice_replaces_older_plans(kind: str, request: pytest.FixtureRequest) -> None:
    robot: Robot = request.getfixturevalue(kind)
    robot.walk(range(3))
    robot.verifier.changes = {"assignment": 1}
    robot.choose("age", 2.0)
    robot.walk(range(3, 5))
    before = len(robot.link.updates)
    assert not robot.loop.notice(Notice(START_NS, 1, 1))
    assert robot.walk(range(5, 6))[-1].plan_left > 0
    assert len(robot.link.updates) == before


def test_a_lost_verifier_may_come_back_with_an_earlier_clock(ahead: Robot) -> None:
    ahead.verifier.changes = {"assignment": 1}
    ahead.loop.notice(Notice(LATER_NS, 1, 1))
    ahead.walk(range(2))
    ahead.link.present = False
    ahead.pass_time(0.2)
    ahead.link.present = True
    assert ahead.loop.notice(Notice(START_NS, 0))


def settled(robot: Robot, kind: str) -> None:
    """Let a robot follow the verifier's first assignment."""
    robot.verifier.changes = {"assignment": 1}
    robot.loop.notice(Notice(START_NS, 1, 1))
    robot.walk(range(5))
    assert robot.records[-1].reason is Reason.NONE, kind


FORGED = {
    "a later revision": Notice(START_NS, 99, 99),
    "no assignment": Notice(START_NS, 2**32 - 1, 0),
    "a later start": Notice(2**62, 1, 7),
    "the same assignment": Notice(2**62, 2**32 - 1, 1),
}


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize("kind", ["ahead", "waiting"])
def test_a_notice_that_no_reply_fits_stops_the_robot_for_a_while_only(
    kind: str, forged: str, request: pytest.FixtureRequest
) -> None:
    """Another program published it once, and may be gone."""
    robot: Robot = request.getfixturevalue(kind)
    settled(robot, kind)
    robot.loop.notice(FORGED[forged])
    robot.walk(range(5, 10 + REFUSED_MOST))
    assert all(record.reason is Reason.NONE for record in robot.walk(range(10 + REFUSED_MOST, 40)))
    assert robot.loop.assignments is not None
    assert robot.loop.assignments.own == 1
    robot.verifier.changes = {"assignment": 2}
    robot.loop.notice(Notice(START_NS, 2, 2))
    robot.walk(range(40, 45 + REFUSED_MOST))
    assert all(record.reason is Reason.NONE for record in robot.walk(range(45 + REFUSED_MOST, 80)))
    assert robot.loop.assignments.followed == 2
    assert robot.loop.assignments.figures["assignments.ignored"] == 1


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize("real", [Notice(START_NS, 2, 2), Notice(LATER_NS, 0, 0), Notice(LATER_NS, 3, 3)])
def test_a_forged_notice_hides_no_change_and_no_restart(ahead: Robot, forged: str, real: Notice) -> None:
    settled(ahead, "ahead")
    ahead.loop.notice(FORGED[forged])
    ahead.verifier.changes = {"assignment": real.own}
    ahead.loop.notice(real)
    ahead.walk(range(5, 10 + REFUSED_MOST))
    assert all(record.reason is Reason.NONE for record in ahead.walk(range(10 + REFUSED_MOST, 40)))
    assert ahead.loop.assignments is not None
    assert ahead.loop.assignments.followed == real.own
    assert not ahead.loop.assignments.outdated


def test_a_notice_that_a_reply_did_fit_stays(ahead: Robot) -> None:
    """A backup that lacks the assignment gets no use of its replies, however many it sends."""
    settled(ahead, "ahead")
    ahead.verifier.changes = {"assignment": 0}
    records = ahead.walk(range(5, 50))
    assert not any(record.planned_action for record in records[-30:])

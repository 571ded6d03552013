"""Replies that take up to 6 s: what is still useful is used, and requests stay few."""

from __future__ import annotations

import pytest

from adahi_ros.protocol.records import Reason
from adahi_ros.robot.prefetch import MOST_IN_FLIGHT
from adahi_ros.robot.session import VerifierState
from test.robot.conftest import PERIOD_S, MakeRobot, Robot

STEPS, BACK = 600, 60
MOST_HZ = 4.0  # requests per second where replies come too late to be used


def across(make_robot: MakeRobot, horizon: int, delay_s: float) -> Robot:
    """A robot that executes plans, or is held, across a link with this round trip."""
    robot = make_robot("always", limit=0, plans=horizon).connect()
    robot.link.delay_s = (delay_s / 2, delay_s / 2)
    return robot


@pytest.mark.parametrize(("horizon", "delay_s"), [(40, 0.5), (40, 1.0), (40, 1.5), (100, 2.0), (200, 6.0)])
def test_a_plan_that_outlasts_its_round_trip_is_executed(
    make_robot: MakeRobot, horizon: int, delay_s: float
) -> None:
    robot = across(make_robot, horizon, delay_s)
    records = robot.walk(range(STEPS))
    acted = [record for record in records if record.action]
    late = round(delay_s / PERIOD_S)
    assert acted[0].step <= 2 * late + 1
    assert all(late <= record.plan_age < horizon for record in acted)
    assert len(acted) > STEPS / 4
    assert max(record.requests_pending for record in records) <= MOST_IN_FLIGHT
    assert robot.session.link is VerifierState.READY


@pytest.mark.parametrize("delay_s", [1.0, 2.0, 4.0, 6.0])
def test_replies_that_are_too_late_hold_the_robot_until_they_are_not(
    make_robot: MakeRobot, delay_s: float
) -> None:
    robot = across(make_robot, 8, delay_s)
    records = robot.walk(range(STEPS))
    assert not any(record.action for record in records)
    assert {record.reason for record in records} == {Reason.FALLBACK_LIMIT}
    assert len(robot.session.submitted) <= MOST_HZ * STEPS * PERIOD_S
    assert max(record.requests_pending for record in records) <= MOST_IN_FLIGHT
    robot.link.delay_s = (0.01, 0.01)
    back = robot.walk(range(STEPS, STEPS + BACK))
    moves = [bool(record.action) for record in back]
    assert all(moves[moves.index(True) :])
    assert moves.index(True) * PERIOD_S <= 1.0

"""Replies that take up to 6 s: what is still useful is used, and requests stay few."""

from __future__ import annotations

import pytest

from adahi_ros.core.health_level import Health, Level
from adahi_ros.protocol.records import Reason
from adahi_ros.robot.diagnosis import Diagnosis
from adahi_ros.robot.prefetch import MOST_IN_FLIGHT
from test.robot.conftest import PERIOD_S, MakeRobot, Robot

STEPS, BACK = 600, 60
MOST_HZ = 4.0  # requests per second where replies come too late to be used


def across(make_robot: MakeRobot, horizon: int, delay_s: float) -> Robot:
    """A robot that executes plans, or is held, across a link with this round trip."""
    robot = make_robot("always", limit=0, plans=horizon).connect()
    robot.link.delay_s = (delay_s / 2, delay_s / 2)
    return robot


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


@pytest.mark.parametrize(("delay_s", "held"), [(1.0, 0.0), (1.5, 0.0), (1.9, 0.26), (2.5, 0.68)])
def test_half_of_a_plan_must_outlast_a_reply(make_robot: MakeRobot, delay_s: float, held: float) -> None:
    """The next request is sent after a reply at the earliest, so a plan must outlast two of them."""
    robot = across(make_robot, HORIZON, delay_s)
    records = robot.walk(range(STEPS))[3 * HORIZON :]  # 3.3 s a plan
    assert sum(not record.action for record in records) / len(records) == pytest.approx(held, abs=0.05)
    said = f"replies take {delay_s:.2g} s, and half of a plan is 1.7 s: about {100 * held:.0f} % of the time "
    assert robot.loop.plan_fault.startswith(said if held else "")
    assert bool(robot.loop.plan_fault) == bool(held)


HORIZON = 66


def test_the_fault_is_news_once_and_in_the_diagnostics_while_it_lasts(make_robot: MakeRobot) -> None:
    robot = across(make_robot, HORIZON, 1.9)
    condition = Diagnosis(robot.link.now_s)
    condition.active = True
    logged = []
    for step in range(400):
        robot.see(1, step)
        news = condition.observed(int(1e9 * robot.link.now_s) + 1, robot.link.now_s)
        logged += [] if news is None else [news]
        robot.pass_time(PERIOD_S)
        if step % 20 == 0:
            level, message, _ = health(condition, robot)
    assert [(each.level, each.text) for each in logged] == [(Level.WARN, robot.loop.plan_fault)]
    assert (level, message) in (
        (Level.WARN, robot.loop.plan_fault),
        (Level.ERROR, "held: no reply of the target"),
    )
    robot.link.delay_s = (0.1, 0.1)
    robot.walk(range(400, 800))
    assert robot.loop.plan_fault == ""


def health(condition: Diagnosis, robot: Robot) -> Health:
    now_s = robot.link.now_s
    return condition.report(robot.session, robot.loop, True, False, {}, {}, now_s, int(1e9 * now_s))

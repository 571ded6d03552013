"""Robots of a fleet that are there to ask go by plans, ask before need, and tell when they are starved."""

from __future__ import annotations

import json

import pytest

from adahi_lab.nodes.fleet_robot import FleetRobot
from adahi_ros.robot.session import VerifierState
from test.robot.conftest import MakeRobot, Robot

PERIOD_S, HORIZON = 0.05, 8


@pytest.fixture
def robot(make_robot: MakeRobot) -> Robot:
    """A session with a verifier that plans, in simulated time."""
    made: Robot = make_robot("never", plans=HORIZON)
    made.connect()
    return made


def go_on(fleet_robot: FleetRobot, robot: Robot, steps: int) -> None:
    for _ in range(steps):
        fleet_robot.step(robot.link.now_s)
        robot.pass_time(PERIOD_S)
        fleet_robot.poll(robot.link.now_s)


def test_a_robot_goes_by_its_plan_and_asks_before_it_is_over(robot: Robot) -> None:
    one = FleetRobot(robot.session, PERIOD_S, HORIZON // 2, 1.5 * PERIOD_S, 0)
    go_on(one, robot, 40)
    record = one.record
    assert (record.steps, record.starved) == (38, 0)
    assert record.requests == record.replies == len(record.rtt_ms) == 10
    assert max(record.plan_ages) <= HORIZON // 2 + 1
    assert record.bytes_up > 0 < record.bytes_down
    assert not record.reasons


def test_periods_without_a_verifier_that_is_ready_are_counted(robot: Robot) -> None:
    one = FleetRobot(robot.session, PERIOD_S, HORIZON // 2, 0.0, 0)
    go_on(one, robot, 4)
    robot.verifier.replies = False
    go_on(one, robot, 200)
    assert robot.session.link is not VerifierState.READY
    assert one.record.steps == 204
    assert one.record.starved > 180
    assert one.record.reasons["deadline"] > 0
    assert json.loads(json.dumps(one.record.plain())) == one.record.plain()


def test_a_robot_without_replies_is_starved_once_its_plan_is_over(robot: Robot) -> None:
    one = FleetRobot(robot.session, PERIOD_S, HORIZON // 2, 0.0, 0)
    go_on(one, robot, 4)
    robot.verifier.replies = False
    before = one.record.starved
    go_on(one, robot, HORIZON)
    assert one.record.starved == before + 4


def test_every_request_has_one_fate(robot: Robot) -> None:
    one = FleetRobot(robot.session, PERIOD_S, HORIZON // 2, 0.0, 0)
    go_on(one, robot, 4)
    robot.verifier.replies = False
    while one.record.requests < 4:  # the last reply is to overtake those before
        go_on(one, robot, 1)
    robot.verifier.replies = True
    go_on(one, robot, 12)
    robot.verifier.replies = False
    go_on(one, robot, 6)
    record = one.end()
    assert record.reasons["overtaken"] > 0
    assert record.reasons["under_way"] > 0
    assert record.requests == record.replies + record.reasons.total()
    sent = record.bytes_up
    assert one.end() is record
    assert record.bytes_up == sent

"""A robot in lockstep with its world: each reply counts a fixed number of steps after its request."""

from __future__ import annotations

import pytest

from adahi_ros.protocol.records import Reason
from test.robot.conftest import DEADLINE_S, Fate, MakeRobot, Robot
from test.robot.simulated import planned

HORIZON, LATE = 8, 2


@pytest.fixture
def robot(make_robot: MakeRobot) -> Robot:
    """A robot that requests a plan whenever none is in flight."""
    return make_robot("always", plans=HORIZON, late=LATE).connect()


def says(plan_of: int, step: int) -> tuple[float, ...]:
    return (planned(plan_of, step),) * 2


@pytest.mark.parametrize("delay_s", [0.001, 0.02, 0.049])
def test_when_a_reply_counts_does_not_depend_on_when_it_arrives(robot: Robot, delay_s: float) -> None:
    robot.link.delay_s = (delay_s, delay_s)
    records = robot.walk(range(7), period_s=2 * DEADLINE_S)
    assert [record.transmitted for record in records] == [True, True, False, True, False, True, False]
    plans = (1, 1, 1, 2, 2, 4, 4)  # the number of the observation behind each step's plan
    assert [record.action for record in records] == [says(of, step) for step, of in enumerate(plans)]
    assert {record.reason for record in records} == {Reason.NONE}


def test_the_observation_at_which_a_reply_counts_waits_for_it(robot: Robot) -> None:
    robot.walk(range(1), period_s=DEADLINE_S)
    robot.link.delay_s = (0.03, 0.03)
    for step in (1, 2, 3):
        robot.see(1, step)
    assert [record.step for record in robot.records] == [0, 1, 2]
    robot.pass_time(DEADLINE_S)
    assert robot.record_of(3).action == says(2, 3)


def test_a_stop_drops_the_reply_and_the_observation_that_waits(robot: Robot) -> None:
    robot.walk(range(1), period_s=DEADLINE_S)
    for step in (1, 2, 3):
        robot.see(1, step)
    robot.loop.stop()
    robot.pass_time(DEADLINE_S)
    assert [record.step for record in robot.records] == [0, 1, 2]
    assert robot.session.submitted[-1].fate is Fate.CANCELLED


def test_another_episode_takes_no_reply_of_the_last(robot: Robot) -> None:
    robot.walk(range(1), period_s=DEADLINE_S)
    robot.see(1, 1)
    first = robot.see(2, 0)
    robot.pass_time(DEADLINE_S)
    assert robot.record(first).action == says(first.stamp_ns, 0)

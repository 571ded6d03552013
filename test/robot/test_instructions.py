"""What a target is to do is told with each request; nothing that was planned for something else is done."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adahi_ros.wire.records import Reason
from test.robot.conftest import PERIOD_S, Robot, planned

HORIZON = 8


@pytest.fixture
def told(make_robot: Callable[..., Robot]) -> Robot:
    """A robot that goes on by the plans of a target which is told in a sentence."""
    robot = make_robot("age", plans=HORIZON)
    robot.choose("age", 4.0)
    robot.verifier.describe_otherwise(instruction=True)
    robot.connect()
    return robot


def steps(robot: Robot, first: int, last: int) -> None:
    for step in range(first, last + 1):
        robot.see(1, step)
        robot.pass_time(PERIOD_S)


def test_a_target_that_must_be_told_is_not_asked_before(told: Robot) -> None:
    steps(told, 0, 2)
    assert not told.link.sent
    assert told.records[-1].reason is Reason.REFUSED
    assert told.records[-1].message.startswith("instruction: none was told")
    told.loop.tell("fold the towel")
    steps(told, 3, 4)
    assert [request.instruction for request, _ in told.link.updates] == ["fold the towel"]
    assert told.records[-1].planned_action


def test_a_target_that_is_told_nothing_gets_no_sentence(make_robot: Callable[..., Robot]) -> None:
    robot = make_robot("age", plans=HORIZON)
    robot.connect()
    robot.loop.tell("fold the towel")
    steps(robot, 0, 1)
    assert {request.instruction for request, _ in robot.link.updates} == {""}


def test_what_was_planned_or_asked_for_something_else_is_not_done(told: Robot) -> None:
    told.loop.tell("fold the towel")
    steps(told, 0, 2)
    assert told.records[-1].plan_left > 1
    under_way = told.observation(1, 3)
    told.choose("always")
    told.show(under_way)  # asks, and the reply is on its way
    asked = len(told.link.updates)
    told.loop.tell("open the drawer")
    told.loop.tell("open the drawer")  # said again, it changes nothing
    now = told.see(1, 4)
    assert told.record(now).plan_left == 0
    told.pass_time(PERIOD_S)
    last = told.see(1, 5)
    assert [request.instruction for request, _ in told.link.updates[asked:]] == ["open the drawer"] * 2
    number = float(now.values[0])
    assert told.record(last).planned_action[0] == planned(number, 5)

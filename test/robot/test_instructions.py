"""What a target is to do is told with each request; nothing that was planned for something else is done."""

from __future__ import annotations

import pytest

from adahi_ros.protocol.records import Reason
from test.robot.conftest import PERIOD_S, MakeRobot, Robot
from test.robot.simulated import planned

HORIZON = 8


def connected(robot: Robot) -> Robot:
    """Have a robot find a target which is told in a sentence."""
    robot.choose("age", 4.0)
    robot.verifier.describe_otherwise(instruction=True)
    robot.connect()
    return robot


@pytest.fixture
def instructed(make_robot: MakeRobot) -> Robot:
    """A robot that goes on by the plans of a target, and waits for none."""
    return connected(make_robot("age", plans=HORIZON))


@pytest.fixture
def waiting(make_robot: MakeRobot) -> Robot:
    """A robot that goes on by the plans of a target, and waits for the reply to a request."""
    return connected(make_robot("age", plans=HORIZON, waits=True))


def test_a_target_that_needs_an_instruction_gets_no_request_before(instructed: Robot) -> None:
    instructed.walk(range(2))
    instructed.loop.tell(" \n")
    instructed.walk(range(2, 3))
    assert not instructed.link.sent
    assert instructed.records[-1].reason is Reason.REFUSED
    assert instructed.records[-1].message.startswith("instruction: empty, must say what to do")
    instructed.loop.tell("fold the towel")
    instructed.walk(range(3, 5))
    assert [request.instruction for request, _ in instructed.link.updates] == ["fold the towel"]
    assert instructed.records[-1].planned_action


@pytest.mark.parametrize("waits", [False, True])
def test_plans_of_a_target_without_instructions_stand_with_any_instruction(
    make_robot: MakeRobot, waits: bool
) -> None:
    robot = make_robot("age", plans=HORIZON, waits=waits)
    robot.choose("age", 4.0)
    robot.connect()
    robot.walk(range(2))
    before, left = len(robot.link.updates), robot.records[-1].plan_left
    assert left > 1
    robot.loop.tell("fold the towel")
    robot.walk(range(2, 3))
    assert robot.records[-1].plan_left == left - 1
    robot.choose("always")
    robot.show(robot.observation(1, 3))  # asks, and the reply is on its way
    robot.loop.tell("open the drawer")
    robot.pass_time(PERIOD_S)
    assert len(robot.link.updates) == before + 1
    assert robot.records[-1].planned_action


def test_what_was_planned_or_requested_for_something_else_is_not_done(instructed: Robot) -> None:
    instructed.loop.tell("fold the towel")
    instructed.walk(range(3))
    assert instructed.records[-1].plan_left > 1
    under_way = instructed.observation(1, 3)
    instructed.choose("always")
    instructed.show(under_way)  # asks, and the reply is on its way
    before = len(instructed.link.updates)
    instructed.loop.tell("open the drawer")
    instructed.loop.tell("open the drawer")  # said again, it changes nothing
    now = instructed.see(1, 4)
    assert instructed.record(now).plan_left == 0
    instructed.pass_time(PERIOD_S)
    last = instructed.see(1, 5)
    assert [request.instruction for request, _ in instructed.link.updates[before:]] == ["open the drawer"] * 2
    number = float(now.values[0])
    assert instructed.record(last).planned_action[0] == planned(number, 5)


def test_a_step_that_waits_sends_again_with_another_instruction(waiting: Robot) -> None:
    waiting.loop.tell("fold the towel")
    waiting.walk(range(3))
    assert waiting.records[-1].plan_left > 1
    waiting.choose("always")
    now = waiting.see(1, 3)
    waiting.loop.tell("open the drawer")
    assert [request.instruction for request, _ in waiting.link.updates] == [
        *("fold the towel", "fold the towel"),
        "open the drawer",
    ]
    done = len(waiting.commands.sent)
    waiting.pass_time(PERIOD_S)
    assert waiting.record(now).verified
    assert waiting.commands.sent[done:] == [(now.stamp_ns, (planned(float(now.values[0]), 3),) * 2)]
    waiting.choose("age", 4.0)
    next_one = waiting.see(1, 4)
    assert waiting.record(next_one).planned_action[0] == planned(float(now.values[0]), 4)


@pytest.mark.parametrize("trouble", ["silent", "told nothing"])
def test_a_step_that_waited_executes_no_plan_of_another_instruction(waiting: Robot, trouble: str) -> None:
    """The draft of its own is there only for steps that begin without a plan."""
    waiting.loop.tell("fold the towel")
    waiting.walk(range(3))
    waiting.choose("always")
    waiting.link.delay_s = (0.02, 0.02)
    now = waiting.see(1, 3)
    waiting.verifier.replies = False
    done = len(waiting.commands.sent)
    waiting.loop.tell("open the drawer" if trouble == "silent" else "")
    waiting.pass_time(1.0)
    assert waiting.commands.sent[done:] == []
    assert waiting.record(now).reason is Reason.FALLBACK_LIMIT
    assert waiting.record(now).plan_left == 0
    later = waiting.see(1, 4)
    waiting.pass_time(1.0)
    assert waiting.record(later).plan_left == 0

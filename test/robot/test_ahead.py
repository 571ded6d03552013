"""A robot that goes on by its plan, and waits for no reply, in simulated time."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import RequestFault
from adahi_ros.robot.prefetch import MOST_IN_FLIGHT
from adahi_ros.robot.session import VerifierState
from test.robot.conftest import PERIOD_S, Fate, MakeRobot, Robot
from test.robot.simulated import planned

HORIZON = 8


@pytest.fixture
def planner(make_robot: MakeRobot) -> Robot:
    """A robot that asks for a plan only where it must."""
    return make_robot("never", plans=HORIZON).connect()


def says(plan_of: int, step: int) -> tuple[float, ...]:
    """Return what the plan that the observation with this number asked for says for a step."""
    return (planned(plan_of, step),) * 2


def fates(robot: Robot) -> list[Fate]:
    return [each.fate for each in robot.session.submitted]


@pytest.mark.parametrize("delay_s", [0.005, 0.04, 0.09])
def test_no_command_waits_and_the_next_plan_is_there_before_it_is_needed(
    planner: Robot, delay_s: float
) -> None:
    planner.link.delay_s = (delay_s, delay_s)
    records = planner.walk(range(100))
    assert [record.total_ms for record in records] == [0.0] * 100
    assert [stamp for stamp, _ in planner.commands.sent] == [record.stamp_ns for record in records]
    assert all(record.plan_left > 0 for record in records[10:])
    late = math.ceil(2 * delay_s / PERIOD_S)
    requested = sum(record.transmitted for record in records[20:])
    assert 80 / (HORIZON - late + 1) - 2 <= requested <= 80 / (HORIZON - late - 2) + 2


def test_a_request_tells_what_is_executed_before_its_reply_can_come(planner: Robot) -> None:
    planner.link.delay_s = (0.06, 0.06)
    planner.walk(range(20))
    request = [request for request, _ in planner.link.updates if request.step <= 16][-1]
    before = [planner.record_of(request.step + ahead) for ahead in range(request.ahead)]
    assert request.ahead == 3  # 120 ms of 50
    np.testing.assert_array_equal(
        request.actions.reshape(-1, len(before[0].action)), [record.action for record in before]
    )
    after = planner.record_of(request.step + 3)
    assert (after.plan_age, after.action) == (3, says(before[0].stamp_ns, after.step))


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_a_plan_acts_once_its_reply_is_there(planner: Robot, loss: float) -> None:
    planner.link.delay_s, planner.link.loss = (0.015, 0.015), loss
    ages = [record.plan_age for record in planner.walk(range(600)) if record.verified]
    assert ages.count(1) > (0.95 - loss) * len(ages)


def test_of_replies_that_overtake_each_other_the_latest_request_wins(make_robot: MakeRobot) -> None:
    robot = make_robot("always", plans=HORIZON).connect()
    robot.link.delay_s = (0.06, 0.06)
    robot.walk(range(1))
    robot.link.delay_s = (0.001, 0.001)
    robot.walk(range(1, 2))
    assert fates(robot) == [Fate.CANCELLED, Fate.REPLIED]
    record = robot.walk(range(2, 3))[0]
    assert (record.action, record.plan_age) == (says(2, 2), 1)


def test_where_no_reply_comes_only_so_many_requests_are_under_way(planner: Robot) -> None:
    planner.verifier.replies = False
    most = 0
    for record in planner.walk(range(12)):
        most = max(most, record.requests_pending)
    assert most == MOST_IN_FLIGHT
    assert fates(planner).count(Fate.PENDING) <= MOST_IN_FLIGHT
    assert Fate.SUPERSEDED not in fates(planner)  # while a reply is useful, no newer request replaces it
    assert planner.session.link is VerifierState.UNRESPONSIVE


def test_what_a_gate_has_learned_outlasts_a_change_of_something_else(make_robot: MakeRobot) -> None:
    robot = make_robot("always", plans=HORIZON)
    arguments = {"gate": "random", "rate": 0.5}
    config = ControllerConfig(ThresholdedGate("online", 0.0, arguments=arguments))
    robot.loop.change(config, 0.1)
    robot.connect()
    robot.walk(range(20))
    before = robot.loop.controller.config.trigger.gate.state
    assert (before["steps"], math.isnan(before["wrong"])) == (20, True)
    again = ControllerConfig(ThresholdedGate("online", 0.0, arguments=arguments), smoothing=0.25)
    robot.loop.change(again, 0.1)
    assert repr(robot.loop.controller.config.trigger.gate.state) == repr(before)
    assert robot.loop.controller.config.smoothing == 0.25
    other = ControllerConfig(ThresholdedGate("online", 0.0, arguments={**arguments, "rate": 0.25}))
    robot.loop.change(other, 0.1)
    assert robot.loop.controller.config.trigger.gate.state == {}


def test_a_reply_that_comes_just_as_the_verifier_is_doubted_ends_the_doubt(planner: Robot) -> None:
    planner.verifier.replies = False
    planner.link.delay_s = (0.1, 0.1)
    step = 0
    while planner.session.link is VerifierState.READY:
        missed = sum(fate in (Fate.SUPERSEDED, Fate.MISSED) for fate in fates(planner))
        planner.verifier.replies = missed == 2
        planner.see(1, step)
        planner.pass_time(PERIOD_S)
        step += 1
    assert Fate.PENDING in fates(planner)
    planner.pass_time(0.25)
    assert Fate.REPLIED in fates(planner)
    assert (planner.session.link, planner.session.trouble) == (VerifierState.READY, "")
    records = planner.walk(range(step, step + 40))
    assert all(record.plan_left > 0 for record in records[-20:])


def test_without_a_plan_the_draft_acts_so_long_and_then_the_robot_is_held(make_robot: MakeRobot) -> None:
    robot = make_robot("never", limit=3, plans=HORIZON).connect()
    robot.walk(range(2))
    robot.verifier.replies = False
    records = robot.walk(range(2, 2 + 20))  # the plan goes on to step 7
    assert [record.action == () for record in records] == [False] * (6 + 3) + [True] * 11
    assert records[6].reason in (Reason.NO_PLAN, Reason.BREAKER_OPEN)
    assert records[-1].reason is Reason.FALLBACK_LIMIT
    robot.verifier.replies = True
    back = robot.walk(range(22, 42))
    moves = [record.action != () for record in back]
    assert moves.index(True) <= 13  # the longest pause between probes, and a request
    assert all(moves[moves.index(True) :])


def test_a_plan_for_an_episode_that_is_over_moves_nothing(planner: Robot) -> None:
    planner.link.delay_s = (0.04, 0.04)
    planner.walk(range(1))
    first = planner.see(2, 0)
    planner.pass_time(0.1)
    assert fates(planner)[0] is Fate.CANCELLED
    record = planner.record(first)
    assert (record.plan_left, record.reason) == (0, Reason.NO_PLAN)
    after = planner.walk(range(2, 3), episode=2)[0]
    assert after.action == says(2, 2)


def test_steps_that_were_not_seen_are_passed_over_in_the_plan(planner: Robot) -> None:
    planner.walk(range(2))
    record = planner.walk(range(5, 6))[0]
    assert (record.action, record.plan_age, record.plan_left) == (says(1, 5), 5, HORIZON - 5)


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        ({"status": int(RequestFault.NOT_FINITE), "message": "goal[0]: nan"}, Reason.REFUSED, "goal[0]: nan"),
        ({"actions": (1.0,)}, Reason.BAD_REPLY, "actions"),
        ({"actions": (1e30,) * 2 * (HORIZON - 1)}, Reason.BAD_REPLY, "action[0]"),
    ],
)
def test_a_reply_that_is_no_good_is_reported_and_the_plan_goes_on(
    make_robot: MakeRobot, changes: dict[str, Any], reason: Reason, message: str
) -> None:
    robot = make_robot("always", limit=0, plans=HORIZON).connect()
    robot.see(1, 0)  # held: there is no plan
    robot.pass_time(PERIOD_S)
    robot.verifier.changes = changes
    records = robot.walk(range(1, 4))
    assert [record.reason for record in records] == [Reason.NONE, reason, reason]
    assert records[1].message.startswith(message)
    assert [record.action for record in records] == [says(1, step) for step in (1, 2, 3)]


def test_the_plan_continues_while_the_verifier_is_busy(make_robot: MakeRobot) -> None:
    robot = make_robot("always", limit=0, plans=HORIZON).connect()
    robot.see(1, 0)  # held: there is no plan
    robot.pass_time(PERIOD_S)
    robot.verifier.changes = {"status": int(RequestFault.BUSY), "retry_after_s": 3.5 * PERIOD_S}
    records = robot.walk(range(1, 2))
    robot.verifier.changes = {}
    records += robot.walk(range(2, 7))
    assert [record.action for record in records[:5]] == [says(1, step) for step in range(1, 6)]
    assert [record.transmitted for record in records] == [True, False, False, False, True, True]
    assert [record.reason for record in records[1:4]] == [Reason.BUSY, Reason.NONE, Reason.NONE]
    assert records[5].action == says(6, 6)


def test_what_was_requested_before_the_verifier_was_busy_is_still_awaited(make_robot: MakeRobot) -> None:
    robot = make_robot("always", limit=0, plans=HORIZON).connect()
    robot.verifier.replies = False
    robot.walk(range(1))
    (requested,) = robot.session.submitted
    robot.session.busy_until_s = robot.link.now_s + 10 * PERIOD_S
    robot.walk(range(1, 2))
    assert requested.fate is Fate.PENDING
    assert robot.records[-1].reason is Reason.FALLBACK_LIMIT  # held: there is no plan yet
    assert robot.records[-1].message.startswith("busy")


def test_a_request_says_how_soon_it_is_needed(planner: Robot) -> None:
    planner.walk(range(12))
    needed = [each.pending.request.needed_in_s for each in planner.session.submitted]
    assert needed[0] < PERIOD_S / 10  # there is no plan
    assert all(0.0 < each <= 3 * PERIOD_S for each in needed[1:])


@pytest.mark.parametrize(("horizon", "delay_s"), [(1, 0.005), (HORIZON, 0.19)])
def test_a_reply_of_which_nothing_is_left_does_not_keep_a_robot_going(
    make_robot: MakeRobot, horizon: int, delay_s: float
) -> None:
    robot = make_robot("never", limit=3, plans=horizon).connect()
    robot.link.delay_s = (delay_s, delay_s)
    records = robot.walk(range(60))
    assert Fate.REPLIED in fates(robot)
    assert not any(record.plan_left for record in records)
    assert [record.action != () for record in records] == [True] * 3 + [False] * 57


def test_a_repeated_observation_counts_the_requests_that_were_sent(make_robot: MakeRobot) -> None:
    robot = make_robot("never", limit=0, plans=HORIZON).connect()
    robot.link.delay_s = (0.3, 0.3)
    observation = robot.see(1, 0)
    for number in range(5):
        robot.pass_time(0.005)
        robot.show(replace(observation, stamp_ns=1000 + number))
    assert sum(record.transmitted for record in robot.records) == len(robot.session.submitted) == 2
    sent = [record.request_bytes > 0 for record in robot.records]
    assert sent == [record.transmitted for record in robot.records]

"""The control steps of a robot, in simulated time."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adahi_ros.contract.fields import InputError
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import RequestFault
from adahi_ros.robot.outcomes import RETRY_MOST_S, DraftError
from adahi_ros.robot.session import VerifierState
from test.robot.conftest import Fate, MakeRobot, Robot

PERIOD_S = 0.05


def test_what_is_changed_holds_from_the_next_step_on(robot: Robot) -> None:
    robot.verifier.replies = False
    before = robot.see(1, 0)
    robot.loop.change(ControllerConfig(ThresholdedGate("always", 0.25)), 0.02)
    robot.pass_time(0.099)
    assert not robot.commands.sent  # it waits as long as it was to
    robot.pass_time(0.002)
    after = robot.see(1, 1)
    robot.pass_time(0.021)
    first, second = robot.record(before), robot.record(after)
    assert (first.threshold, first.total_ms) == (0.5, pytest.approx(100.0))
    assert (second.threshold, second.total_ms) == (0.25, pytest.approx(20.0))
    robot.loop.change(ControllerConfig(ThresholdedGate("never", 0.0)), 0.02)
    assert not robot.record(robot.see(1, 2)).transmitted


def test_a_reply_counts_where_the_observation_was_repeated_meanwhile(robot: Robot) -> None:
    """A simulator waits for its first command, and the reply takes longer than the arm may be unmeasured."""
    robot.loop._acts_within_s = 0.03
    robot.link.delay_s = (0.02, 0.02)
    observation = robot.see(1, 0)
    robot.pass_time(0.025)
    robot.show(replace(observation, stamp_ns=1000))
    robot.pass_time(0.03)
    assert robot.record(observation).action == robot.verified_action(observation)


def test_without_a_reply_the_draft_is_executed_by_the_deadline(robot: Robot) -> None:
    robot.verifier.replies = False
    observation = robot.see(1, 0)
    robot.pass_time(0.099)
    assert not robot.commands.sent
    robot.pass_time(0.002)
    record = robot.record(observation)
    assert (record.transmitted, record.verified, record.reason) == (True, False, Reason.DEADLINE)
    assert robot.commands.sent == [(observation.stamp_ns, record.draft_action)]
    assert record.total_ms == pytest.approx(100.0)


def test_a_late_reply_moves_nothing(robot: Robot) -> None:
    robot.link.delay_s = (0.06, 0.06)
    late = robot.see(1, 0)
    robot.pass_time(0.11)
    assert robot.record(late).reason is Reason.DEADLINE
    robot.link.delay_s = (0.005, 0.005)
    after = robot.see(1, 1)
    robot.pass_time(1.0)
    assert robot.record(after).action == robot.verified_action(after)
    assert len(robot.commands.sent) == 2


def test_a_newer_observation_executes_the_draft_of_the_one_that_waits(robot: Robot) -> None:
    first = robot.see(1, 0)
    robot.verifier.changes = {"step": 1}  # the reply to the first names the second
    second = robot.see(1, 1)
    robot.verifier.changes = {}
    record = robot.record(first)
    assert record.reason is Reason.SUPERSEDED
    assert record.action == record.draft_action
    robot.pass_time(PERIOD_S)
    assert robot.record(second).action == robot.verified_action(second)
    assert [stamp for stamp, _ in robot.commands.sent] == [first.stamp_ns, second.stamp_ns]
    assert [each.fate for each in robot.session.submitted] == [Fate.SUPERSEDED, Fate.REPLIED]


@pytest.mark.parametrize("newer", [(2, 0), (0, 5), (1, 2)])
def test_an_episode_that_is_over_or_started_again_moves_nothing(robot: Robot, newer: tuple[int, int]) -> None:
    robot.walk(range(1, 2))
    robot.see(1, 3)
    observation = robot.see(*newer)
    robot.pass_time(PERIOD_S)
    assert len(robot.commands.sent) == len(robot.records) == 2
    assert robot.record(observation).verified
    assert robot.loop.totals.dropped == 1
    _, update = robot.link.updates[-1]
    assert update.base == 0
    window = np.frombuffer(update.rows.numbers, np.float32).reshape(-1, 3)
    assert (window == window[-1]).all()  # nothing of before is left


def test_a_repeated_observation_gets_the_same_command_again(robot: Robot) -> None:
    observation = robot.see(1, 0)
    again = replace(observation, stamp_ns=1000)
    robot.show(again)
    robot.pass_time(PERIOD_S)
    assert not robot.commands.repeated  # it was waited for
    robot.show(again)
    assert robot.commands.repeated == [1000]
    assert len(robot.records) == robot.loop.totals.repeated == 1
    assert len(robot.session.submitted) == 1


@pytest.mark.parametrize("waits", [True, False])
def test_another_observation_of_the_same_number_moves_nothing(robot: Robot, waits: bool) -> None:
    observation = robot.see(1, 0)
    if not waits:
        robot.pass_time(PERIOD_S)
    before = len(robot.commands.sent)
    with pytest.raises(InputError, match=r"0 of episode 1 again, with other values"):
        robot.see(1, 0)
    with pytest.raises(InputError, match=r"again"):
        robot.show(replace(observation, goal=np.array([1.0], np.float32)))
    assert len(robot.commands.sent) == before
    robot.pass_time(PERIOD_S)
    assert robot.record(observation).verified
    assert len(robot.commands.sent) == 1


def test_an_observation_without_a_sound_proposal_leaves_no_trace(make_robot: MakeRobot) -> None:
    plain, disturbed = make_robot("random"), make_robot("random")
    for robot in (plain, disturbed):
        robot.connect()
        for step in range(20):
            if robot is disturbed:
                with pytest.raises(DraftError, match="goal: holds values that are not finite"):
                    robot.show(replace(robot.observation(1, step, math.nan), stamp_ns=1000 + step))
            values = np.array([step + 1, 0.25, -0.25], np.float32)
            robot.show(replace(robot.observation(1, step), stamp_ns=step + 1, values=values))
            robot.pass_time(PERIOD_S)
    assert disturbed.loop.totals.undrafted == 20
    assert (plain.commands.withheld, disturbed.commands.withheld) == (0, 20)  # a base must not go on
    assert [record.action for record in plain.records] == [record.action for record in disturbed.records]
    transmitted = [record.transmitted for record in plain.records]
    assert transmitted == [record.transmitted for record in disturbed.records]
    assert 0 < sum(transmitted) < 20


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        ({"status": 3, "message": "goal[0]: nan"}, Reason.REFUSED, "goal[0]: nan"),
        ({"accepted": (True,)}, Reason.BAD_REPLY, "accepted"),
        ({"actions": (0.0, -1e30)}, Reason.BAD_REPLY, "action[1]"),  # sound but for what it does
    ],
)
def test_a_reply_that_is_no_good_executes_the_draft(
    robot: Robot, changes: dict[str, Any], reason: Reason, message: str
) -> None:
    robot.verifier.changes = changes
    observation = robot.see(1, 0)
    robot.pass_time(PERIOD_S)
    record = robot.record(observation)
    assert record.reason is reason
    assert record.message.startswith(message)
    assert not record.verified
    assert robot.commands.sent == [(observation.stamp_ns, record.draft_action)]
    assert record.response_bytes > 0


def test_a_verifier_that_is_busy_is_left_alone_for_as_long_as_it_says(robot: Robot) -> None:
    status = int(RequestFault.BUSY)
    robot.verifier.changes = {"status": status, "message": "so many wait", "retry_after_s": 0.12}
    records = []
    for step in range(5):
        observation = robot.see(1, step)
        robot.pass_time(PERIOD_S)
        records.append(robot.record(observation))
        robot.verifier.changes = {}
    assert [record.transmitted for record in records] == [True, False, False, True, True]
    assert [record.reason for record in records] == [*[Reason.BUSY] * 3, Reason.NONE, Reason.NONE]
    assert records[0].message == "so many wait"
    assert robot.session.link is VerifierState.READY


@pytest.mark.parametrize("delay", [math.nan, math.inf, -1.0, 1e9])
def test_a_verifier_with_a_nonsense_retry_time_is_queried_soon(robot: Robot, delay: float) -> None:
    robot.verifier.changes = {"status": int(RequestFault.BUSY), "retry_after_s": delay}
    robot.walk(range(1))
    robot.verifier.changes = {}
    robot.pass_time(RETRY_MOST_S)
    observation = robot.see(1, 1)
    robot.pass_time(PERIOD_S)
    assert robot.record(observation).verified


def test_the_first_step_waits_for_a_verifier_as_long_as_it_may(make_robot: MakeRobot) -> None:
    robot = make_robot()
    robot.link.present = False
    robot.loop.start(1.0)
    for _ in range(5):
        robot.walk(range(1), 0.1)
    assert not robot.loop.begins_alone
    robot.pass_time(0.6)
    assert robot.loop.begins_alone
    observation = robot.see(1, 0)
    assert robot.record(observation).reason is Reason.NO_VERIFIER
    assert not robot.loop.begins_alone
    assert (robot.loop.totals.steps, robot.loop.totals.unattended) == (1, 5)


def test_nothing_of_before_is_left_after_a_stop(robot: Robot) -> None:
    robot.see(1, 0)
    robot.loop.stop()
    robot.pass_time(1.0)
    assert not robot.commands.sent
    assert robot.loop.totals.steps == 0
    robot.connect()
    again = robot.see(1, 0)
    robot.pass_time(PERIOD_S)
    assert robot.record(again).verified
    assert robot.session.link is VerifierState.READY

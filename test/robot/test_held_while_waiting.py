"""A step that waits for its reply while the robot is held, or while the arm is moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adahi_ros.contract.assembler import Observation
from adahi_ros.protocol.records import Reason
from adahi_ros.safety.commands import Outgoing
from test.robot.conftest import PERIOD_S
from test.robot.teleoperated import DRAFT, STEP, Teleoperated


class Measured(Teleoperated):
    """The arm is known by its observations alone, as on a robot."""

    def observation(self, *given: Any, **named: Any) -> Observation:
        observed = super().observation(*given, **named)
        self.measured = {**getattr(self, "measured", {}), observed.stamp_ns: self.arm.read}
        return observed


@pytest.fixture
def waiting(fixed_policy: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Measured:
    """A robot in motion, pressed, of which the newest step waits for a reply that does not come."""
    monkeypatch.setattr("test.robot.conftest.DEADLINE_S", 0.45)
    robot = Measured(fixed_policy(DRAFT), "always", limit=None, plans=8, waits=True, required=True)
    robot.connect()
    arm = robot.arm

    def limit(action: np.ndarray | None, observation: Observation) -> Outgoing:
        return arm.commands.limit(action, robot.measured[observation.stamp_ns], arm._now_s())

    def persons(observation: Observation) -> Outgoing:
        return arm._person.limit(robot.measured[observation.stamp_ns], arm._now_s())

    monkeypatch.setattr(arm, "limit", limit)
    monkeypatch.setattr(robot.person, "limit", persons)
    arm.permission.set_enabled(True, robot.link.now_s)
    robot.link.delay_s = (0.002, 0.002)
    robot.go(12)
    robot.verifier.replies = False
    robot.step += 1
    robot.see(1, robot.step)
    return robot


def stop_and_press(robot: Measured) -> None:
    robot.arm.permission.set_enabled(False, robot.link.now_s)
    robot.arm.look()
    robot.pass_time(0.005)
    robot.arm.permission.set_enabled(True, robot.link.now_s)


def take_and_give_back(robot: Measured) -> None:
    robot.press(True)
    robot.arm.look()
    robot.pass_time(0.005)
    robot.press(False)
    robot.arm.look()


def test_a_moved_arm_is_not_commanded_by_a_step_from_before_a_gap(waiting: Measured) -> None:
    for _ in range(7):
        waiting.pass_time(PERIOD_S)
        waiting.arm.look()
    waiting.arm.at = waiting.arm.at + 1.5 * STEP
    before = len(waiting.moves)
    waiting.step += 1
    waiting.see(1, waiting.step)
    assert len(waiting.moves) == before
    assert waiting.arm.guard.holding


@pytest.mark.parametrize("ends", ["its reply", "its deadline"])
def test_a_step_from_before_a_push_moves_nothing(waiting: Measured, ends: str) -> None:
    before, step = len(waiting.moves), waiting.step
    waiting.pass_time(3 * PERIOD_S)
    waiting.arm.at = waiting.arm.at + 1.5 * STEP
    waiting.verifier.replies = ends == "its reply"
    waiting.pass_time(0.6)
    assert len(waiting.moves) == before
    ended = next(record for record in waiting.records if record.step == step)
    assert (ended.action, ended.reason) == ((), Reason.SUPERSEDED)


@pytest.mark.parametrize("ends", ["its reply", "its deadline", "a newer observation"])
def test_a_person_who_stands_still_moves_nothing_back(waiting: Measured, ends: str) -> None:
    waiting.pass_time(3 * PERIOD_S)
    waiting.arm.at = waiting.arm.at + 1.5 * STEP
    pushed, before = waiting.arm.at.copy(), len(waiting.arm.sent)

    def stand_still(periods: int) -> None:
        for _ in range(periods):
            waiting.press(True)
            waiting.command()
            waiting.arm.look()
            waiting.pass_time(PERIOD_S)

    stand_still(1)
    if ends == "a newer observation":
        waiting.step += 1
        waiting.see(1, waiting.step)
    waiting.verifier.replies = ends == "its reply"
    stand_still(8)
    waiting.drive(5)
    for _, command, _ in waiting.arm.sent[before:]:
        np.testing.assert_allclose(command, pushed, atol=0.5 * STEP)


@pytest.mark.parametrize("happens", [stop_and_press, take_and_give_back])
@pytest.mark.parametrize("ends", ["its reply", "a newer observation"])
def test_a_step_from_before_a_hold_moves_nothing(
    waiting: Measured, happens: Callable[[Measured], None], ends: str
) -> None:
    before, step = len(waiting.moves), waiting.step
    waiting.pass_time(0.005)
    happens(waiting)
    if ends == "its reply":
        waiting.verifier.replies = True
        waiting.pass_time(0.45)
    else:
        waiting.pass_time(PERIOD_S)
        waiting.step += 1
        waiting.see(1, waiting.step)
    assert len(waiting.moves) == before
    ended = next(record for record in waiting.records if record.step == step)
    assert ended.action == ()
    assert ended.reason in (Reason.SUPERSEDED, Reason.PERSON)


def test_a_short_takeover_counts_again_before_the_policy_acted(waiting: Measured) -> None:
    waiting.drive(5)
    waiting.press(False)
    for _ in range(12):  # the policy has the arm again, and no reply
        waiting.pass_time(PERIOD_S)
        waiting.arm.look()
    waiting.step += 1
    waiting.see(1, waiting.step)
    before, step = len(waiting.moves), waiting.step
    waiting.pass_time(0.002)
    take_and_give_back(waiting)
    waiting.verifier.replies = True
    waiting.pass_time(0.45)
    assert len(waiting.moves) == before
    ended = next(record for record in waiting.records if record.step == step)
    assert (ended.action, ended.reason) == ((), Reason.SUPERSEDED)

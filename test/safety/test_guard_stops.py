"""The operator enables and stops the robot: every moment is given, no clock is read."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.safety.envelope import HOLDS_AT_REST, Envelope
from adahi_ros.safety.guard import Guard, GuardConfig
from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.permission import Permission
from test.safety.conftest import HOLD_AFTER_S, PERIOD_S, Robot, limits_of, listed


def stream(robot: Robot, periods: int) -> list[bool]:
    """Let `enable` say true once a period; return whether the robot was enabled after each."""
    enabled = []
    for _ in range(periods):
        robot.wait()
        robot.press(True)
        enabled.append(robot.guard.enabled(robot.now_s))
    return enabled


@pytest.mark.parametrize("required", [True, False])
def test_a_stop_by_the_service_stays_while_the_topic_goes_on_saying_true(required: bool) -> None:
    robot = Robot("positions", {}, require_enable=required)
    assert stream(robot, 3)[-1]
    robot.permission.set_enabled(False, robot.now_s)
    assert not any(stream(robot, 100))
    assert (robot.permission.stopped, robot.act(0.1)) == (True, None)
    robot.permission.set_enabled(True, robot.now_s)
    assert robot.guard.enabled(robot.now_s)
    assert not robot.permission.stopped
    assert robot.act(0.1) == 0.1


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("let_go", ["silent", "false"])
def test_after_a_stop_by_service_the_topic_must_let_go_before_it_enables(required: bool, let_go: str) -> None:
    robot = Robot("positions", {}, require_enable=required, enable_timeout_s=0.2)
    stream(robot, 3)
    robot.permission.set_enabled(False, robot.now_s)
    assert not any(stream(robot, 3))
    if let_go == "silent":
        robot.wait(20)
        assert not any(stream(robot, 3))  # it may be a slow or suspended publisher
    robot.press(False)
    assert robot.permission.stopped
    assert stream(robot, 1)[0]
    assert not robot.permission.stopped


@pytest.mark.parametrize("required", [True, False])
def test_after_the_process_stood_still_old_trues_are_no_fresh_press(required: bool) -> None:
    robot = Robot("positions", {}, require_enable=required)
    stream(robot, 3)
    robot.permission.set_enabled(False, robot.now_s)
    robot.now_s += 10.0
    for period in range(200):  # what was published meanwhile arrives all at once
        robot.press(True, age_s=10.0 - period * PERIOD_S)
        assert not robot.guard.enabled(robot.now_s)
    assert not any(stream(robot, 30))
    assert robot.permission.stopped


@pytest.mark.parametrize("required", [True, False])
def test_after_a_false_on_the_topic_its_next_true_enables(required: bool) -> None:
    robot = Robot("positions", {}, require_enable=required)
    stream(robot, 3)
    robot.press(False)
    assert robot.permission.stopped
    assert not robot.guard.enabled(robot.now_s)
    assert stream(robot, 1)[0]


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("active", [True, False])
def test_a_stop_outlasts_a_new_start(required: bool, active: bool) -> None:
    robot = Robot("positions", {}, require_enable=required)
    stream(robot, 3)
    if active:
        robot.permission.set_enabled(False, robot.now_s)
    robot.guard.stop()
    if not active:
        robot.permission.set_enabled(False, robot.now_s)
    assert not any(stream(robot, 30))
    robot.guard.start(robot.now_s)
    assert robot.permission.stopped
    assert not any(stream(robot, 30))
    robot.permission.set_enabled(True, robot.now_s)
    assert robot.guard.enabled(robot.now_s)


def test_what_the_service_enabled_ends_with_the_activation() -> None:
    robot = Robot("positions", {}, require_enable=True)
    robot.permission.set_enabled(True, robot.now_s)
    assert robot.guard.enabled(robot.now_s)
    robot.guard.stop()
    robot.guard.start(robot.now_s)
    assert not robot.guard.enabled(robot.now_s)


def test_a_deadman_that_is_let_go_is_no_stop() -> None:
    robot = Robot("positions", {}, require_enable=True, enable_timeout_s=0.2)
    stream(robot, 3)
    robot.wait(10)
    assert not robot.guard.enabled(robot.now_s)
    assert not robot.permission.stopped
    assert stream(robot, 1)[0]


def test_each_hold_of_an_arm_at_rest_is_commanded_several_times() -> None:
    robot = Robot("positions", {})
    robot.act(0.5)
    robot.press(False)
    assert robot.wait() == [0.5]
    robot.permission.driver("protective stop")
    assert robot.wait(10) == [0.5] * HOLDS_AT_REST


@pytest.mark.parametrize("replaced_by", ["a person's", "one withheld"])
def test_an_action_that_was_replaced_is_not_executed_later(replaced_by: str) -> None:
    robot = Robot("positions", {}, require_enable=True)
    assert robot.act(0.1) is None
    if replaced_by == "one withheld":
        robot.guard.withhold(robot.now_s)
    else:
        robot.guard.act(np.array([0.2]), np.array([0.0]), robot.now_s, person=True)
    robot.press(True)
    assert robot.repeat() is None
    assert robot.act(0.3) == 0.3


def test_while_a_person_has_the_arm_only_the_persons_actions_pass() -> None:
    robot, at = Robot("positions", {}), np.array([0.1])
    robot.permission.takeover.signal(True, 0.0, robot.now_s)
    assert robot.act(0.1) is None
    assert robot.guard.interventions == (Intervention.TAKEOVER,)
    assert robot.guard.act(at, at, robot.now_s, person=True) == at
    assert robot.act(0.1) is None
    assert robot.guard.interventions == (Intervention.TAKEOVER,)


@pytest.mark.parametrize("ends", ["false", "give_back"])
def test_a_persons_last_velocity_ends_without_an_observation(ends: str) -> None:
    robot = Robot("velocities", {"velocity": 1.0, "acceleration": 4.0})
    takeover = robot.permission.takeover
    for publishers in takeover.publishers.values():
        publishers.note_publishers(frozenset((b"person",)), None, robot.now_s)
    takeover.signal(True, 0.0, robot.now_s)
    for _ in range(4):
        robot.wait()
        robot.guard.observed(robot.now_s)
        robot.guard.act(np.array([0.5]), np.array([0.0]), robot.now_s, person=True)
    assert robot.wait(2) == []  # it goes on while the person drives
    if ends == "false":
        takeover.signal(False, 0.0, robot.now_s)
    else:
        takeover.give_back(0.0, robot.now_s)
    assert robot.wait(6)[-1] == 0.0
    assert robot.guard.holding
    assert robot.act(0.1) == 0.1


def test_an_arm_far_outside_is_commanded_to_rest_several_times() -> None:
    robot, sent = Robot("positions", {"position_low": -1.0, "position_high": 1.0}), []
    robot.act(0.5)
    for _ in range(10):
        robot.now_s += PERIOD_S
        sent.append(robot.act(0.5, measured=9.0))
    assert sent == [0.5] * HOLDS_AT_REST + [None] * (10 - HOLDS_AT_REST)


def test_after_an_activation_the_person_and_holds_of_before_are_forgotten() -> None:
    robot, at = Robot("positions", {}), np.array([0.1])
    robot.permission.takeover.signal(True, 0.0, robot.now_s)
    assert robot.guard.act(at, at, robot.now_s, person=True) == at
    robot.guard.stop()
    robot.wait()
    robot.guard.start(robot.now_s)
    assert robot.guard.reason(robot.now_s).startswith("takeover: ")
    robot.permission.takeover.give_back(0.0, robot.now_s)
    assert not robot.guard.resumes(robot.now_s)


@pytest.mark.parametrize(("period_s", "pause_s"), [(0.02, 0.032), (0.1, 0.1)])
def test_an_arm_is_braked_after_a_pause_that_is_short_or_within_a_period(
    period_s: float, pause_s: float
) -> None:
    permission = Permission(False, 0.5)
    envelope = Envelope(limits_of(), "positions", period_s)
    guard = Guard(envelope, GuardConfig(period_s, HOLD_AFTER_S), permission, 100.0)
    guard.start(100.0)
    assert listed(guard.act(np.array([0.5]), None, 100.0)) == [0.5]
    permission.set_enabled(False, 100.0)
    assert listed(guard.brake_if_held(100.0 + pause_s)) == [0.5]

"""A measured position that changes faster than the arm can is no measurement: the robot is held."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adahi_ros.safety.holds import Event
from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.measured_jumps import SETTLED_S
from test.safety.conftest import PERIOD_S, Robot

ARM = {"position_low": -3.0, "position_high": 3.0, "velocity": 2.0, "max_step": 0.1}
ALLOWED = 0.1 + 3 * 2.0 * PERIOD_S


def moving() -> Robot:
    robot = Robot("positions", ARM, require_enable=True)
    robot.press(True)
    for _ in range(10):
        assert robot.act(0.5, measured=0.5) == 0.5
        robot.wait()
        robot.press(True)
    return robot


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_jump_holds_until_the_positions_are_steady_and_a_fresh_press(sign: float) -> None:
    robot = moving()
    assert robot.act(0.5, measured=0.5 + sign * (ALLOWED + 1e-6)) is None
    assert robot.guard.interventions == (Intervention.MEASURED,)
    assert "a was measured at 0.5 and 0.05 s later at" in robot.guard.reason(robot.now_s)
    robot.wait()
    assert robot.act(0.5, measured=0.5) is None  # a jump back
    robot.press(False)
    robot.press(True)
    assert robot.act(0.5, measured=0.5) is None  # not steady yet
    for _ in range(math.ceil(SETTLED_S / PERIOD_S) + 1):
        robot.wait()
        robot.press(True)
        assert robot.act(0.5, measured=0.5) is None
    assert robot.permission.needs_press
    robot.press(False)
    robot.press(True)
    assert robot.act(0.5, measured=0.5) == 0.5


def test_two_measurements_in_turns_never_let_the_robot_move() -> None:
    assert Event.STEADY.value == f"{SETTLED_S} s without a jump"
    robot = Robot("positions", ARM, require_enable=True)
    for step in range(200):
        robot.press(step % 20 != 0)  # presses again and again
        command = robot.act(1.0, measured=1.0 if step % 3 else 0.0)
        assert command is None or step < 2
        robot.wait()


def test_an_arm_that_moves_as_fast_as_it_may_does_not_jump() -> None:
    robot, at = moving(), 0.5
    for _ in range(20):
        at += 0.1
        assert robot.act(at, measured=at - 0.1) is not None
        robot.wait()
        robot.press(True)


def test_the_time_between_is_that_of_the_stamps() -> None:
    robot = moving()
    measured = np.array([0.5 + ALLOWED])
    robot.guard.observed(robot.now_s)
    assert robot.guard.act(measured, np.array([0.5]), robot.now_s, 7000.0) is not None
    robot.now_s += PERIOD_S
    robot.press(True)
    robot.guard.observed(robot.now_s)
    assert robot.guard.act(measured, measured, robot.now_s, 7000.0) is None  # the same stamp


def test_stamps_that_go_back_are_no_jump_of_an_arm_that_stands() -> None:
    robot = moving()
    at = np.array([0.5])
    for stamp_s in (7000.0, 6000.0):
        robot.guard.observed(robot.now_s)
        assert robot.guard.act(at, at, robot.now_s, stamp_s) is not None
        robot.now_s += PERIOD_S
        robot.press(True)


def test_a_press_does_not_excuse_a_jump_that_no_moving_arm_can_make() -> None:
    robot = moving()
    assert robot.act(0.5, measured=0.5) == 0.5
    robot.now_s += 0.3  # for so long it could have gone 2.0 m/s, but no command lasts as long
    robot.press(False)
    robot.press(True)
    assert robot.act(2.0, measured=2.0) is None
    assert robot.guard.interventions == (Intervention.MEASURED,)


@pytest.mark.parametrize("cause", ["stale", "withheld"])
def test_another_position_after_a_silence_needs_a_press(cause: str) -> None:
    """Such as the zeros of another program, when the driver has ended."""
    robot = moving()
    for _ in range(20):
        robot.press(True)
        robot.wait()
        if cause == "withheld":
            robot.guard.observed(robot.now_s)
            robot.guard.withhold(robot.now_s)
    for _ in range(20):
        robot.press(True)
        assert robot.act(0.3, measured=0.3) is None
        assert "a is at 0.3 and was commanded to 0.5" in robot.guard.reason(robot.now_s)
        robot.wait()
    robot.press(False)
    robot.press(True)
    assert robot.act(0.3, measured=0.3) == 0.3


def test_a_continuous_joint_that_rests_at_a_whole_turn_does_not_jump() -> None:
    robot = Robot("positions", {"velocity": 2.0, "max_step": 0.1, "continuous": True})
    for step in range(20):
        measured = (math.pi - 0.01) * (1 if step % 2 else -1)
        assert robot.act(measured, measured=measured) is not None
        robot.wait()


@pytest.mark.parametrize("set_to", [-2.0, 0.55])
@pytest.mark.parametrize("late", [0, 3])
def test_a_new_episode_starts_where_a_simulator_has_set_the_arm(set_to: float, late: int) -> None:
    robot = moving()
    robot.guard.new_episode()
    for _ in range(late):  # without an action, nothing goes back to the last command
        robot.guard.observed(robot.now_s)
        assert robot.guard.withhold(robot.now_s, measured=np.array([set_to])) is None
        robot.wait()
        robot.press(True)
        assert robot.guard.brake_if_held(robot.now_s) is None
    assert robot.act(2.9, measured=set_to) == pytest.approx(set_to + 0.1)
    assert Intervention.FOLLOWING not in robot.guard.counts


@pytest.mark.parametrize("missing", ["velocity", "max_step"])
def test_without_limits_nothing_is_compared(missing: str) -> None:
    limit = {name: value for name, value in ARM.items() if name != missing}
    robot = Robot("positions", limit)
    assert robot.act(0.0, measured=0.0) is not None
    robot.wait()
    assert robot.act(2.9, measured=2.9) is not None


def test_a_joint_with_ends_that_jumps_by_a_turn_jumps() -> None:
    robot = Robot("positions", {**ARM, "position_low": -7.0, "position_high": 7.0})
    assert robot.act(3.0, measured=3.0) == 3.0
    robot.wait()
    assert robot.act(3.0, measured=3.0 - 2.0 * math.pi) is None
    assert robot.guard.interventions == (Intervention.MEASURED,)


def test_an_arm_that_sags_between_late_commands_is_not_held() -> None:
    robot = Robot("positions", {"max_step": 0.1})
    for measured, sent in ((0.0, 0.1), (0.0, 0.1), (-0.05, 0.05)):
        robot.now_s += 1.4 * PERIOD_S
        assert robot.act(0.1, measured=measured) == pytest.approx(sent)

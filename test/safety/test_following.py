"""When an arm does not follow its commands: every moment is given, no clock is read."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.safety.envelope import WINDOW_S
from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.measured_jumps import SETTLED_S
from test.safety.conftest import HOLD_AFTER_S, PERIOD_S, Robot

ARM = {"position_low": -3.0, "position_high": 3.0, "velocity": 2.0, "acceleration": 8.0}
ARM |= {"max_step": 0.1, "following": 0.05}


def test_an_arm_in_protective_stop_is_held_until_a_fresh_press() -> None:
    robot = Robot("positions", ARM, require_enable=True)
    robot.press(True)
    commands = []
    for step in range(120):  # six seconds with the deadman pressed
        commands.append(robot.act(0.03 * step, measured=0.0))
        robot.wait()
        robot.press(True)
    assert robot.guard.counts[Intervention.FOLLOWING] == 1
    assert commands[int(2 * WINDOW_S / PERIOD_S)] is None
    assert "a is further than 0.05 from its commands" in robot.guard.reason(robot.now_s)
    assert robot.permission.needs_press
    robot.press(False)
    robot.wait(10)
    robot.press(True)
    assert robot.act(3.0, measured=0.0) == pytest.approx(8.0 * PERIOD_S**2)


def test_after_a_fresh_press_an_arm_has_a_whole_window_to_follow() -> None:
    robot = Robot("positions", ARM)
    while Intervention.FOLLOWING not in robot.guard.counts:
        robot.act(3.0, measured=0.0)
        robot.wait()
    robot.permission.set_enabled(True, robot.now_s)
    sent = []
    for _ in range(int(2 * WINDOW_S / PERIOD_S)):
        sent.append(robot.act(3.0, measured=0.0) is not None)
        robot.wait()
    assert sum(sent) == pytest.approx(WINDOW_S / PERIOD_S, abs=1)
    assert sent == sorted(sent, reverse=True)


@pytest.mark.parametrize("lag", [1, 3, 8])
def test_an_arm_that_lags_follows_at_any_speed(lag: int) -> None:
    robot = Robot("positions", {**ARM, "max_step": 1.0})
    path = [0.0] * (lag + 1)
    for step in range(200):
        wanted = float(np.sin(0.02 * step))
        path.append(robot.act(wanted, measured=path[-1 - lag]) or 0.0)
        robot.wait()
    assert Intervention.FOLLOWING not in robot.guard.counts


def test_an_arm_that_was_moved_while_it_was_held_follows() -> None:
    robot = Robot("positions", {**ARM, "acceleration": np.inf})
    for _ in range(20):
        robot.act(0.0, measured=0.0)
        robot.wait()
    robot.press(False)
    robot.wait(int(2 * SETTLED_S / PERIOD_S))
    assert robot.act(1.0, measured=1.0) is None  # the operator sees it there
    robot.press(True)
    at = [1.0, 1.0]
    for _ in range(20):
        at.append(robot.act(0.0, measured=at[-2]) or 9.0)
        robot.wait()
    assert at[-1] < 0.5


def test_what_is_not_measured_is_not_checked() -> None:
    robot = Robot("positions", ARM)
    for step in range(60):
        assert robot.act(0.001 * step, measured=None) is not None
        robot.wait()


def test_a_continuous_joint_that_wraps_does_not_turn_back() -> None:
    robot = Robot("positions", {"velocity": 2.0, "max_step": 0.2, "continuous": True})
    path = [robot.act(3.0, measured=3.0) or 0.0]
    for _ in range(40):
        robot.wait()
        wrapped = (path[-1] + np.pi) % (2 * np.pi) - np.pi
        path.append(robot.act(wrapped + 0.05, measured=wrapped) or 0.0)
    assert robot.act(path[-1] - 2 * np.pi, measured=None) == pytest.approx(path[-1])
    assert path[-1] == pytest.approx(3.0 + 40 * 0.05)
    assert Intervention.DISPLACED not in robot.guard.counts


def test_a_driver_that_stops_holds_until_a_fresh_press() -> None:
    robot = Robot("positions", ARM, require_enable=True)
    robot.press(True)
    assert robot.act(0.0, measured=0.0) == 0.0
    robot.permission.driver("robot_mode.mode: 5, must be 7")
    assert "must be 7" in robot.guard.reason(robot.now_s)
    assert robot.act(0.0, measured=0.0) is None
    robot.permission.driver("")
    for _ in range(30):
        robot.wait()
        robot.press(True)
        assert robot.act(0.0, measured=0.0) is None
    assert robot.guard.counts[Intervention.DRIVER] == 1
    robot.press(False)
    robot.press(True)
    assert robot.act(0.0, measured=0.0) == 0.0


def test_a_hold_or_a_gap_makes_plans_outdated() -> None:
    robot = Robot("positions", {})
    robot.act(0.0)
    robot.wait(2)
    assert not robot.guard.resumes(robot.now_s)
    robot.wait(20)
    assert robot.guard.resumes(robot.now_s)
    robot.act(0.0)
    assert not robot.guard.resumes(robot.now_s)
    robot.press(False)
    robot.wait()
    assert not robot.guard.resumes(robot.now_s)
    robot.press(True)
    assert robot.guard.resumes(robot.now_s)
    assert not robot.guard.resumes(robot.now_s)
    robot.guard.observed(robot.now_s)
    robot.now_s += HOLD_AFTER_S + PERIOD_S  # without a look
    assert robot.guard.resumes(robot.now_s)


def test_a_position_far_outside_holds_what_moves_by_itself_too() -> None:
    robot = Robot("positions", {"position_low": -1.0, "position_high": 1.0})
    robot.act(0.0, measured=1e5)
    assert robot.guard.holding
    robot.act(0.0, measured=0.0)
    assert not robot.guard.holding


@pytest.mark.parametrize("cause", ["gap", "nan", "unverified"])
def test_a_stuck_arm_is_noticed_through_short_interruptions(cause: str) -> None:
    robot = Robot("positions", ARM)
    for step in range(60):
        robot.wait(2 if cause == "gap" and step % 8 == 7 else 1)
        if cause == "unverified" and step % 8 == 7:
            robot.guard.observed(robot.now_s)
            robot.guard.withhold(robot.now_s)
        else:
            robot.act(np.nan if cause == "nan" and step % 8 == 7 else 3.0, measured=0.0)
    assert robot.guard.counts[Intervention.FOLLOWING] > 0


@pytest.mark.parametrize("field", ["velocities", "effort"])
def test_what_is_no_position_is_never_turned(field: str) -> None:
    robot = Robot(field, {"velocity": 5.0, "effort": 5.0, "continuous": True})
    for _ in range(5):
        assert robot.act(0.0, measured=4.0) == 0.0
        robot.wait()

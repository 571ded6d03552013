"""Velocities of trajectory points: the controller's curve stays within the limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adahi_lab.tasks.trajectory_controller import TrajectoryController
from adahi_ros.safety.intervention import Intervention
from test.safety.conftest import PERIOD_S, Robot

VELOCITY = 2.0
ARM = {"velocity": VELOCITY, "acceleration": 8.0}


@settings(max_examples=50)
@given(st.lists(st.floats(-2.0, 2.0), min_size=2, max_size=60), st.integers(1, 40))
def test_the_speed_requested_of_a_controller_stays_within_the_limit(targets: list[float], hold: int) -> None:
    robot = Robot("positions", ARM)
    controller: TrajectoryController | None = None
    with_velocities = 0
    for step, target in enumerate(targets):
        robot.wait()
        if step == hold:
            robot.wait(30)
        command = robot.act(target, measured=None)
        assert command is not None
        if controller is None:
            controller = TrajectoryController(np.array([command]))
        else:
            at = robot.guard.velocities
            with_velocities += at is not None
            controller.receive(np.array([command]), at, 0.0, PERIOD_S, robot.now_s)
    assert controller is not None
    assert max(controller.peak_speed) <= VELOCITY + 1e-6
    assert with_velocities > 0


def test_a_hold_and_a_repeat_carry_none() -> None:
    robot = Robot("positions", ARM)
    for _ in range(10):
        robot.act(9.0, measured=None)
        robot.wait()
    robot.act(9.0, measured=None)
    carried = [robot.guard.velocities is not None]
    robot.repeat()
    carried.append(robot.guard.velocities is not None)
    robot.wait()
    robot.act(9.0, measured=None)
    carried.append(robot.guard.velocities is not None)
    robot.press(False)
    robot.wait()
    assert [*carried, robot.guard.velocities is not None] == [True, False, True, False]


def test_a_sink_that_does_not_stop_is_reported_and_counted_once() -> None:
    robot = Robot("positions", {})
    for fault in ("", "hand: does not cancel a goal", "hand: does not cancel a goal", "", "again"):
        robot.guard.sink(fault)
        assert (Intervention.GRIPPER in robot.guard.reported) == bool(fault)
        assert robot.guard.reason(robot.now_s) == (f"gripper: {fault}" if fault else "")
    assert robot.guard.counts[Intervention.GRIPPER] == 2


def test_a_short_interval_and_a_turn_back_make_a_command_faster() -> None:
    robot = Robot("positions", {"velocity": 1.0})
    carried = []
    for at, interval_s in ((0.0, 0.05), (-0.03, 0.025), (-0.0375, 0.05), (-0.0025, 0.05), (0.0325, 0.05)):
        robot.act(at, measured=None)
        carried.append(None if robot.guard.velocities is None else robot.guard.velocities[0])
        robot.now_s += interval_s
    # From -0.3 to 0.7 the curve is faster than 1.0 in between.
    assert carried == [None, pytest.approx(-0.6), pytest.approx(-0.3), None, pytest.approx(0.7)]


def test_what_came_late_was_reached_in_one_period_and_at_once_has_no_speed() -> None:
    robot = Robot("positions", {"velocity": 1.0})
    carried = []
    for at, interval_s in (
        (0.0, 1.4 * PERIOD_S),
        (-0.03, PERIOD_S),
        (0.001, 0.0),
        (0.001, PERIOD_S),
        (0.031, 1.0),
    ):
        robot.act(at, measured=None)
        carried.append(None if robot.guard.velocities is None else robot.guard.velocities[0])
        robot.now_s += interval_s
    # From -0.6, not -0.43, to 0.62 the curve is faster than 1.0 in between.
    assert carried == [None, pytest.approx(-0.6), None, None, pytest.approx(0.6)]


@pytest.mark.parametrize(("periods", "carried"), [(1.4, None), (2.0, 0.62)])
def test_an_arm_that_turns_back_may_have_its_speed_until_a_gap(periods: float, carried: float | None) -> None:
    robot = Robot("positions", {"velocity": 1.0})
    for at, pause_s in ((0.0, PERIOD_S), (-0.03, periods * PERIOD_S), (0.001, 0.0)):
        robot.act(at, measured=None)
        robot.now_s += pause_s
    found = robot.guard.velocities
    assert (None if found is None else found[0]) == (None if carried is None else pytest.approx(carried))


def test_two_commands_at_once_have_no_speed_without_a_limit_either() -> None:
    robot = Robot("positions", {})
    robot.act(0.0, measured=None)
    robot.act(0.1, measured=None)
    assert robot.guard.velocities is None

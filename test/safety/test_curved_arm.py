"""An arm whose controller follows the curve of its commands stays within every limit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adahi_ros.core.command_curve import APART_S
from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.measured_jumps import SETTLED_S
from test.safety.conftest import HOLD_AFTER_S, PERIOD_S, Robot
from test.safety.curved_arm import ACCELERATION, BRAKES_M, HIGH, LOW, SPEED, STEPS, Arm

IN_BURSTS = 1.001  # speed of commands in less than a period, as a share of the limit


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_any_lateness_change_or_stop_stays_within_the_limits(steps: list[tuple[float, float, int]]) -> None:
    arm = Arm()
    for wanted, periods, event in steps:
        if event == 0:
            arm.enable(False)
            arm.look()
        elif event <= 2:
            arm.enable(True)
        elif event == 3:
            arm.receive(arm.guard.withhold(arm.now_s))
        arm.step(wanted)
        arm.pass_by_within_limits(periods * PERIOD_S)
    assert arm.controller.peak_speed[0] <= SPEED * IN_BURSTS
    assert arm.controller.largest_jump[0] <= SPEED * APART_S  # points that are closer are one


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(LOW, HIGH), st.floats(-0.2, 0.2)), min_size=2, max_size=40))
def test_steps_in_time_stay_within_speed_and_acceleration(steps: list[tuple[float, float]]) -> None:
    arm = Arm()
    arm.step(0.0)
    begin_s = arm.now_s + 2.0 * PERIOD_S
    arm.now_s += 1.5 * PERIOD_S
    arm.step(0.0)  # later than all others will be
    for step, (wanted, late) in enumerate(steps):
        arm.now_s = begin_s + PERIOD_S * (step + late)
        arm.step(wanted)
    assert arm.controller.peak_acceleration[0] <= ACCELERATION * (1.0 + 1e-6)
    assert arm.controller.peak_speed[0] <= SPEED * (1.0 + 1e-6)


@given(st.floats(0.0, 4.0), st.floats(-2.0, 2.0), st.integers(1, 12))
@settings(max_examples=100, deadline=None)
def test_a_stop_at_any_time_ends_the_motion_within_the_braking_path(
    late: float, speed: float, steps: int
) -> None:
    arm = Arm()
    for step in range(steps):
        arm.step(speed * PERIOD_S * (step + 1))
        arm.now_s += PERIOD_S
    arm.now_s += (late - 1.0) * PERIOD_S
    arm.enable(False)
    stopped_at = arm.at.positions[0]
    arm.look()
    arm.pass_by(1.0)
    rest = arm.at
    assert rest.velocities[0] == 0.0
    assert abs(rest.positions[0] - stopped_at) <= BRAKES_M
    arm.pass_by(10.0)
    assert arm.at == rest


def test_a_step_that_is_late_again_by_as_much_is_no_stop() -> None:
    arm, slowest = Arm(), []
    for step in range(24):
        arm.step(0.04 * (step + 1))
        arm.now_s += PERIOD_S * (1.4 if step % 6 == 5 else 0.6 if step and step % 6 == 0 else 1.0)
        slowest.append(arm.at.velocities[0])
    assert min(slowest[4:8]) < 0.75  # the first time
    assert min(slowest[10:]) == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("count", [3, 5, 10])
def test_commands_that_come_at_once_brake_little_harder_than_the_last(count: int, goes_on: bool) -> None:
    """A node that stood still for some periods works off its queue."""
    arm = Arm(position_low=-99.0, position_high=99.0)
    moved = SPEED * PERIOD_S
    for step in range(60 + count):
        arm.now_s += PERIOD_S if step < 60 else 0.002 * PERIOD_S
        arm.step(moved * step)
    arm.now_s += PERIOD_S
    for step in range(10 * goes_on):
        arm.step(moved * (60 + count + step))
        arm.now_s += PERIOD_S
    arm.pass_by(4.0 * PERIOD_S)
    assert arm.controller.peak_acceleration[0] <= 4.0 * SPEED / PERIOD_S * (1.0 + 1e-6)
    assert arm.controller.peak_speed[0] <= SPEED * (1.0 + 1e-6)


@pytest.mark.parametrize("after", [1, 12, 24])
def test_a_stopped_arm_whose_policy_goes_on_brakes_as_hard_as_allowed(after: int) -> None:
    """Both the policy's steps and the timer look whether it is to brake."""
    arm, ticks, speeds = Arm(position_low=-99.0, position_high=99.0, acceleration=4.0), 25, []
    for step in range(80):
        if step == 40:
            arm.enable(False)
            arm.look()
        arm.step(SPEED * PERIOD_S * step)
        for tick in range(ticks):
            if tick == after and step >= 40:
                arm.look()
            arm.now_s += PERIOD_S / ticks
            speeds.append(arm.at.velocities[0])
    assert speeds[-1] == 0.0
    assert np.abs(np.diff(speeds)).max() * ticks / PERIOD_S <= 4.0 * 1.01


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(6, 24), st.floats(0.0, 0.002)), min_size=60, max_size=60))
def test_braking_is_within_the_limit_though_the_clock_is_read_twice(
    looks: list[tuple[int, float]],
) -> None:
    """Deadman, timer and observations brake in less than a period, and sending takes time."""
    arm, tick_s, speeds = Arm(acceleration=4.0, position_low=-99.0, position_high=99.0), PERIOD_S / 25, []
    for step in range(20):
        arm.step(SPEED * PERIOD_S * step)
        arm.now_s += PERIOD_S
    arm.enable(False)
    for ticks, arm.reads_s in looks:
        arm.look()
        for _ in range(ticks):
            arm.now_s += tick_s
            speeds.append(arm.at.velocities[0])
    assert speeds[-1] == 0.0
    assert np.abs(np.diff(speeds)).max() / tick_s <= 4.0 * 1.01


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 25), st.lists(st.tuples(st.floats(-1.0, 1.0), st.integers(2, 25)), min_size=2))
def test_a_new_episode_in_motion_begins_at_rest_within_the_limits(
    after: int, steps: list[tuple[float, int]]
) -> None:
    """A simulator has set the arm elsewhere, and its controller follows a new curve."""
    arm, tick_s, speeds = Arm(acceleration=4.0), PERIOD_S / 25, [0.0]
    for step in range(10):
        arm.step(0.04 * step)
        arm.now_s += PERIOD_S
    arm.now_s += after * tick_s - PERIOD_S
    arm.controller.hold(np.full(1, -0.5), arm.now_s)
    arm.guard.new_episode()
    for wanted, ticks in steps:
        arm.step(wanted)
        for _ in range(ticks):
            arm.now_s += tick_s
            speeds.append(arm.at.velocities[0])
    assert arm.controller.largest_jump[0] <= 1e-9
    assert np.abs(np.diff(speeds)).max() / tick_s <= 4.0 * 1.01


@pytest.mark.parametrize("late", [1, 3])
def test_a_new_episode_changes_nothing_for_an_arm_near_its_command(late: int) -> None:
    arm, other = Arm(acceleration=4.0), Arm(acceleration=4.0)
    for each in (arm, other):
        for step in range(10):
            each.step(0.04 * step)
            each.now_s += PERIOD_S
    arm.guard.new_episode(np.array([0.04 * (9 - late)]))  # a measurement lags
    assert not arm.guard._motion.anywhere
    for each in (arm, other):
        each.step(0.4)
        each.now_s += PERIOD_S / 2
    assert arm.at == other.at


@pytest.mark.parametrize("after", [0.4, 4.0, 11.0])
def test_an_arm_that_nothing_drives_is_not_braked_and_starts_where_it_is(after: float) -> None:
    """Its next controller stands where the former one left the arm: a command would make it jump."""
    arm, ticks, speeds = Arm(acceleration=4.0), 25, [0.0]
    for step in range(10):
        arm.step(0.04 * step)
        arm.now_s += PERIOD_S
    place, left_s = arm.at.positions, arm.now_s
    arm.guard.leave(np.array([True]), arm.now_s)
    arm.controller.hold(place, arm.now_s)
    arm.enable(False)
    assert arm.guard.brake_if_held(arm.now_s) is None
    assert not arm.guard.moving
    arm.now_s += after * PERIOD_S
    arm.enable(True)
    for _ in range(15):
        assert arm.now_s >= left_s + SETTLED_S or arm.at.positions[0] == place[0]
        arm.step(0.5)
        for _ in range(ticks):
            arm.now_s += PERIOD_S / ticks
            speeds.append(arm.at.velocities[0])
    assert arm.controller.largest_jump[0] <= 1e-9
    assert arm.at.positions[0] > place[0]
    assert np.abs(np.diff(speeds)).max() * ticks / PERIOD_S <= 4.0 * 1.01


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-1.5, 1.5), st.integers(1, 25), st.integers(0, 9)), min_size=1, max_size=40)
)
def test_commands_in_less_than_a_period_are_within_the_acceleration(
    steps: list[tuple[float, int, int]],
) -> None:
    arm, tick_s, speeds = Arm(acceleration=4.0, position_low=-99.0, position_high=99.0), PERIOD_S / 25, [0.0]
    for wanted, ticks, event in steps:
        arm.enable(event > 1)
        arm.step(wanted)
        for _ in range(ticks):
            arm.now_s += tick_s
            speeds.append(arm.at.velocities[0])
    assert np.abs(np.diff(speeds)).max() / tick_s <= 4.0 * 1.01
    assert np.abs(speeds).max() <= SPEED * 1.001


def test_without_observations_the_arm_is_held_and_comes_to_rest() -> None:
    arm = Arm()
    arm.step(0.05)
    arm.pass_by(HOLD_AFTER_S + 2.0 * PERIOD_S)
    assert arm.guard.holding
    assert arm.at.velocities[0] == 0.0


def test_at_the_end_of_the_node_it_stops_within_two_periods() -> None:
    arm = Arm()
    for step in range(10):
        arm.step(0.05 * (step + 1))
        arm.now_s += PERIOD_S
    here = arm.at.positions[0]
    arm.receive(arm.guard.halt(arm.now_s))
    arm.now_s += 3.0 * PERIOD_S
    assert arm.at.velocities[0] == 0.0
    assert abs(arm.at.positions[0] - here) <= 2.0 * PERIOD_S * SPEED


def test_it_rests_when_the_curve_has_ended() -> None:
    arm = Arm()
    arm.step(0.05)
    arm.enable(False)
    for _ in range(20):
        arm.look()
        rests = arm.guard.at_rest(arm.now_s)
        assert not rests or arm.at.velocities[0] == 0.0
        arm.now_s += PERIOD_S
    assert rests


def test_a_sink_that_does_not_stop_is_reported_and_counted_once() -> None:
    robot = Robot("positions", {})
    for fault in ("", "hand: does not cancel a goal", "hand: does not cancel a goal", "", "again"):
        robot.guard.sink(fault)
        assert (Intervention.GRIPPER in robot.guard.reported) == bool(fault)
        assert robot.guard.reason(robot.now_s) == (f"gripper: {fault}" if fault else "")
    assert robot.guard.counts[Intervention.GRIPPER] == 2

"""What the guard lets through, and when it holds: every moment is given, no clock is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adahi_ros.safety.envelope import HOLDS_AT_REST
from adahi_ros.safety.holds import Event
from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.measured_jumps import SETTLED_S
from test.safety.conftest import GARBAGE, HIGH, HOLD_AFTER_S, LOW, MARGIN, PERIOD_S, SPEED, Robot, listed


def full_speed(robot: Robot) -> float:
    speed = 0.0
    for _ in range(30):
        speed = robot.act(1.0) or 0.0
        robot.wait()
    return speed


def test_braking_goes_on_through_a_new_start() -> None:
    robot = Robot("velocities", {"velocity": 1.0, "acceleration": 1.0})
    assert full_speed(robot) == 1.0
    robot.act(1.0)
    robot.guard.stop()
    assert robot.wait() == [pytest.approx(0.95)]
    robot.guard.start(robot.now_s)
    braked = robot.wait(40)
    assert braked[0] == pytest.approx(0.9)
    assert braked[-1] == 0.0
    assert (np.diff(braked) <= 0.0).all()
    assert not robot.guard.moving


def test_a_velocity_that_nothing_drives_is_0_at_once() -> None:
    """Its next controller stands: the speeds of braking would move it."""
    robot = Robot("velocities", {"velocity": 1.0, "acceleration": 1.0})
    full_speed(robot)
    robot.act(1.0)
    robot.guard.leave(np.array([True]), robot.now_s)
    robot.guard.stop()
    assert not any(robot.wait(40))
    assert not robot.guard.moving


def test_a_withheld_action_brakes_the_robot_until_one_is_let_through() -> None:
    robot = Robot("velocities", {"velocity": 1.0, "acceleration": 1.0})
    full_speed(robot)
    sent = []
    for _ in range(40):
        robot.guard.observed(robot.now_s)
        sent.append(robot.guard.withhold(robot.now_s))
        sent += [np.array([each]) for each in robot.wait()]
    path = [float(each[0]) for each in sent if each is not None]
    assert path[0] < 1.0
    assert path[-1] == 0.0
    assert (np.diff(path) <= 0.0).all()
    assert sent[-1] is None
    assert robot.guard.counts[Intervention.UNVERIFIED] == 1
    assert robot.repeat() is None
    assert robot.act(0.05) == pytest.approx(0.05)


def test_a_robot_stopped_while_its_actions_are_withheld_says_so() -> None:
    robot = Robot("positions", {})
    robot.act(0.0)
    robot.press(False)
    assert robot.guard.withhold(robot.now_s) is not None
    assert robot.guard.interventions == (Intervention.DISABLED,)
    robot.wait(HOLDS_AT_REST)
    assert robot.guard.withhold(robot.now_s) is None
    assert robot.guard.interventions == (Intervention.DISABLED,)


def test_an_action_ends_a_hold_and_takes_its_speed_over() -> None:
    robot = Robot("velocities", {"velocity": 1.0, "acceleration": 1.0})
    full_speed(robot)
    robot.act(1.0)
    robot.press(False)
    braked = robot.wait(4)
    robot.press(True)
    assert robot.act(1.0) == pytest.approx(braked[-1], abs=1.0 * PERIOD_S + 1e-9)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from([None, 0.5, 5.0, 40.0, 1000.0]))
def test_motion_begins_where_it_is_measured_only_after_a_while_at_rest(
    data: st.DataObject, acceleration: float | None
) -> None:
    """Nor is the command that comes to rest one: a position is at rest where it repeats the one before."""
    robot = Robot("positions", {} if acceleration is None else {"acceleration": acceleration})
    sent, moved_s, wait_s = robot.act(0.0), robot.now_s, st.sampled_from([0.0, 0.001, 0.045, 0.05, 0.3, 0.6])
    for _ in range(40):
        robot.now_s += data.draw(wait_s)
        what = data.draw(st.sampled_from(["look", "look", "look", "act", "forbid", "allow"]))
        if what == "act":
            measured = (sent or 0.0) + 1e-6  # too little to be displaced
            with pytest.MonkeyPatch.context() as patch:
                started: list[np.ndarray | None] = []
                patch.setattr(robot.guard._envelope, "begin", lambda *given, to=started: to.append(given[0]))
                command = robot.act(data.draw(st.floats(-1.0, 1.0)), measured)
            assert not started or robot.now_s - moved_s >= SETTLED_S
        else:
            if what != "look":
                robot.permission.set_enabled(what == "allow", robot.now_s)
            held = robot.guard.brake_if_held(robot.now_s)
            command = None if held is None else float(held[0])
        if command is not None:
            moved_s = moved_s if command == sent else robot.now_s
            sent = command


def test_a_repeated_observation_of_before_a_hold_moves_nothing() -> None:
    robot = Robot("positions", {"position_low": -3.0, "position_high": 3.0, "max_step": 0.05})
    robot.act(0.0)
    robot.press(False)
    robot.wait(math.ceil(SETTLED_S / PERIOD_S) + HOLDS_AT_REST)
    assert robot.act(2.0, measured=2.0) is None
    robot.press(True)
    robot.wait()
    assert robot.repeat() == pytest.approx(2.0)  # what it was owed, from where it is now


def left_without_observations(robot: Robot) -> None:
    robot.now_s += HOLD_AFTER_S + PERIOD_S


@pytest.mark.parametrize(
    "held",
    [
        lambda robot: robot.press(False),
        lambda robot: robot.guard.stop(),
        lambda robot: robot.permission.driver("protective stop"),
        left_without_observations,
    ],
    ids=["stopped", "deactivated", "driver", "stale"],
)
def test_a_repeat_before_the_next_look_moves_no_robot_that_is_held(
    held: Callable[[Robot], None],
) -> None:
    robot = Robot("positions", {})
    assert robot.act(0.0) == robot.repeat() == 0.0
    held(robot)
    assert robot.repeat() is None


def test_repeats_do_not_keep_a_robot_moving() -> None:
    robot = Robot("velocities", {"velocity": 1.0})
    robot.act(0.4)
    sent: list[float | None] = []
    for _ in range(40):
        held = robot.wait()
        sent += held if held else [robot.repeat()]
    moving = [each for each in sent if each == 0.4]
    assert 1 <= len(moving) <= HOLD_AFTER_S / PERIOD_S + 1
    assert sent[-1] is None
    assert robot.guard.counts[Intervention.STALE] == 1


def test_one_that_could_not_move_yet_gets_its_action_when_it_is_enabled() -> None:
    robot = Robot("positions", {}, require_enable=True)
    assert robot.act(0.1) is None
    assert robot.guard.counts == {Intervention.DISABLED: 1}
    robot.wait(20)
    assert robot.repeat() is None
    robot.press(True)
    assert robot.repeat() == 0.1
    assert robot.repeat() == 0.1


@pytest.mark.parametrize(
    ("begins", "ends"),
    [
        (Event.DRIVER_UNKNOWN, Event.DRIVER_FOUND),
        (Event.COMMANDED_TWICE, Event.COMMANDED_ALONE),
        (Event.TAKE, Event.GIVE),
    ],
)
def test_one_that_was_held_gets_its_action_afterwards(begins: Event, ends: Event) -> None:
    """A simulator that shows its first observation again waits for this."""
    robot = Robot("positions", {})
    robot.permission.holds.happen(begins)
    assert robot.act(0.1) is None
    assert robot.repeat() is None
    robot.permission.holds.happen(ends)
    robot.permission.set_enabled(True, robot.now_s)
    assert robot.repeat() == 0.1


@pytest.mark.parametrize("began", [False, True])
def test_one_that_was_stopped_gets_its_action_after_a_press(began: bool) -> None:
    """A simulator may have lost the command, and waits for it."""
    robot = Robot("positions", {"velocity": 10.0}, require_enable=True)
    robot.press(began)
    assert robot.act(0.1) == (0.1 if began else None)
    robot.press(False)
    robot.wait(20)
    assert robot.repeat() is None
    robot.press(True)
    assert robot.repeat() == pytest.approx(0.1)


def test_an_action_that_came_too_late_goes_out_with_a_repeated_observation() -> None:
    robot = Robot("positions", {"velocity": 10.0})
    robot.now_s += HOLD_AFTER_S + PERIOD_S
    assert robot.act(0.1, new=False) is None
    assert robot.repeat() == pytest.approx(0.1)


def test_after_an_activation_no_former_command_is_repeated() -> None:
    robot = Robot("positions", {"velocity": 10.0})
    assert robot.act(0.1) == pytest.approx(0.1)
    robot.wait(2)
    assert robot.repeat() == pytest.approx(0.1)
    robot.guard.stop()
    robot.guard.start(robot.now_s)
    robot.guard.observed(robot.now_s)
    assert robot.repeat() is None


def test_an_action_that_is_no_number_is_a_hold_with_its_name() -> None:
    robot = Robot("positions", {"velocity": 10.0})
    robot.act(math.nan)
    assert robot.guard.holding
    assert robot.guard.reason(robot.now_s) == "not_finite"


def test_an_answer_that_is_too_late_moves_nothing() -> None:
    robot = Robot("positions", {"position_low": -3.0, "position_high": 3.0})
    robot.act(0.0)
    assert robot.wait(20) == []  # it rests since the gap
    assert robot.act(1.0, new=False) is None
    assert robot.guard.counts[Intervention.STALE] == 1
    assert robot.wait(5) == []
    assert robot.act(1.0) == 1.0


def test_who_enables_must_go_on_doing_so_where_that_is_required() -> None:
    robot = Robot("velocities", {"velocity": 1.0}, require_enable=True, enable_timeout_s=0.2)
    robot.press(True)
    assert robot.act(0.5) == 0.5
    held = robot.wait(2)
    assert not robot.guard.at_rest(robot.now_s)
    held += robot.wait(8)
    assert robot.guard.at_rest(robot.now_s)
    assert held == [0.0] * HOLDS_AT_REST
    assert not robot.guard.enabled(robot.now_s)
    robot.permission.set_enabled(True, robot.now_s)
    robot.wait(100)
    assert robot.guard.enabled(robot.now_s)


def test_a_position_far_outside_moves_nothing_one_just_outside_returns() -> None:
    robot = Robot("positions", {"position_low": -1.0, "position_high": 1.0, "velocity": 1.0})
    assert robot.act(0.0, measured=1e5) is None
    assert robot.act(0.0, measured=1.1) == pytest.approx(1.05)
    one_sided = Robot("positions", {"position_low": 0.0})
    assert one_sided.act(0.5, measured=-1e-6) == 0.5


@pytest.mark.parametrize("late", [1, 2, 6])
@pytest.mark.parametrize(
    ("field", "limits"),
    [
        ("velocities", {"velocity": 2.0, "acceleration": 8.0}),
        ("effort", {"effort": 0.5}),
        ("accelerations", {"acceleration": 1.0}),
    ],
)
def test_what_goes_on_through_a_gap_is_stopped_far_outside(
    field: str, limits: dict[str, float], late: int
) -> None:
    robot = Robot(field, {**limits, "position_low": -1.0, "position_high": 1.0})
    for _ in range(6):
        robot.act(2.0)
        robot.wait()
    robot.now_s += late * PERIOD_S
    sent = []
    for _ in range(12):
        sent.append(robot.act(2.0, measured=2.5))
        robot.wait()
    assert sent[0] is not None
    assert 0.0 in sent
    assert [each for each in sent if each is not None][-1] == 0.0
    assert not robot.guard.moving


def test_halt_stops_at_once() -> None:
    robot = Robot("velocities", {"velocity": 1.0, "acceleration": 0.2})
    full_speed(robot)
    robot.act(1.0)
    robot.guard.stop()
    assert robot.wait()[0] > 0.0
    command = robot.guard.halt(robot.now_s)
    assert listed(command)[0] == 0.0
    assert not robot.guard.moving


def test_halt_stops_where_commanded_not_where_measured_long_ago() -> None:
    robot = Robot("positions", {"velocity": 1.0, "acceleration": 0.2})
    for _ in range(80):
        robot.act(9.0, measured=0.0)
        robot.wait()
    robot.guard.stop()
    assert robot.guard.brake_if_held(robot.now_s) is not None
    braked = robot.wait(20)
    command = robot.guard.halt(robot.now_s)
    assert listed(command)[0] == braked[-1] > 1.0


def test_nothing_goes_out_of_a_guard_that_was_not_started() -> None:
    robot = Robot("positions", {})
    robot.guard.stop()
    assert robot.act(1.0) is None
    assert robot.repeat() is None
    assert robot.wait(30) == []
    robot.permission.set_enabled(True, robot.now_s)
    assert not robot.guard.enabled(robot.now_s)


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["act", "act", "act", "repeat", "look", "look", "allow", "forbid", "stop", "start"]),
        st.floats(0.0, 0.2),
        GARBAGE,
        st.one_of(st.none(), GARBAGE),
    ),
    max_size=80,
)


@given(EVENTS)
def test_whatever_happens_commands_stay_within_the_limits_at_any_pace(events: Any) -> None:
    robot = Robot("positions", {"position_low": LOW, "position_high": HIGH, "velocity": SPEED})
    sent: list[tuple[float, float]] = []
    robot.act(0.0, measured=0.0)
    sent.append((robot.now_s, 0.0))
    for kind, pause_s, wanted, measured in events:
        robot.now_s += pause_s
        guard = robot.guard
        command: float | None = None
        if kind == "act":
            near = sent[-1][1] if measured is None else measured
            command = robot.act(wanted, near)
        elif kind == "repeat":
            command = robot.repeat()
        elif kind == "look":
            held = guard.brake_if_held(robot.now_s)
            command = None if held is None else float(held[0])
        elif kind == "stop":
            guard.stop()
        else:
            robot.happen(kind)
        if command is not None:
            assert math.isfinite(command)
            assert LOW - MARGIN <= command <= HIGH + MARGIN
            sent.append((robot.now_s, command))
            if guard.interventions == () and kind == "act":
                assert command == wanted


@given(st.lists(st.floats(0.0, 0.2), min_size=2, max_size=60), st.integers(0, 2**31))
def test_no_pace_of_observations_moves_the_robot_faster_than_it_may(pauses: list[float], seed: int) -> None:
    robot = Robot("positions", {"position_low": LOW, "position_high": HIGH, "velocity": SPEED})
    rng = np.random.default_rng(seed)
    sent = [(robot.now_s, robot.act(0.0) or 0.0)]
    for pause_s in pauses:
        robot.now_s += pause_s
        sent.append((robot.now_s, robot.act(float(rng.uniform(-2.0, 2.0))) or 0.0))
    for first in range(len(sent)):
        for last in range(first + 1, len(sent)):
            took_s = sent[last][0] - sent[first][0] + PERIOD_S
            assert abs(sent[last][1] - sent[first][1]) <= SPEED * took_s + 1e-9

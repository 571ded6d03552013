"""Where motion begins when a hold ends: every moment is given, no clock is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adahi_ros.safety.envelope import HOLDS_AT_REST, Envelope
from adahi_ros.safety.guard import HELD, Guard, GuardConfig
from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.measured_jumps import SETTLED_S
from adahi_ros.safety.permission import Permission
from test.safety.conftest import GARBAGE, HIGH, HOLD_AFTER_S, LOW, PERIOD_S, SPEED, Robot, listed

ARM = {"position_low": -3.0, "position_high": 3.0, "velocity": 2.0, "max_step": 0.05}


def rest(robot: Robot) -> None:
    """Let the robot come to rest, for whatever reason it is held, and stay there."""
    robot.wait(math.ceil((HOLD_AFTER_S + SETTLED_S) / PERIOD_S) + HOLDS_AT_REST)
    assert not robot.guard.moving


def nothing(robot: Robot) -> None:
    """Nothing more is observed."""


def disabled_for_a_while(robot: Robot) -> None:
    robot.press(False)
    rest(robot)
    assert robot.act(0.0, measured=1.0) is None  # the operator sees it there
    robot.press(True)


def unverified_for_a_while(robot: Robot) -> None:
    for _ in range(30):
        robot.guard.observed(robot.now_s)
        robot.guard.withhold(robot.now_s)
        robot.wait()
    assert robot.guard.counts == {Intervention.UNVERIFIED: 1}


def deactivated_for_a_while(robot: Robot) -> None:
    robot.guard.stop()
    rest(robot)
    robot.guard.start(robot.now_s)


@pytest.mark.parametrize(
    "cause", [nothing, disabled_for_a_while, deactivated_for_a_while, unverified_for_a_while]
)
@pytest.mark.parametrize("wanted", [0.0, 1.0, 2.0, math.nan])
def test_motion_begins_from_where_the_robot_is_measured_when_a_hold_ends(
    cause: Callable[[Robot], None], wanted: float
) -> None:
    robot = Robot("positions", ARM)
    robot.act(0.0, measured=0.0)
    cause(robot)
    rest(robot)
    if cause in (nothing, unverified_for_a_while):  # someone has moved it: the operator looks first
        for _ in range(math.ceil(SETTLED_S / PERIOD_S) + 2):
            assert robot.act(wanted, measured=1.0) is None
            assert "a is at 1 and was commanded to 0" in robot.guard.reason(robot.now_s)
            robot.wait()
        robot.press(False)
        robot.press(True)
    command = robot.act(wanted, measured=1.0)
    assert command is not None
    assert abs(command - 1.0) <= 0.05 + 1e-12
    assert robot.guard.counts[Intervention.DISPLACED] == 1
    assert robot.guard.interventions[0] is Intervention.DISPLACED
    robot.wait()
    robot.act(1.0, measured=command)
    assert Intervention.DISPLACED not in robot.guard.interventions


def test_what_is_not_measured_goes_on_from_where_it_was_commanded() -> None:
    limits = Limits.from_fields(["a", "b"], {"a": ARM, "b": {**ARM, "velocity": 1.0}})
    permission = Permission(False, 0.5)
    config = GuardConfig(PERIOD_S, HOLD_AFTER_S)
    guard = Guard(Envelope(limits, "positions", PERIOD_S), config, permission, 0.0)
    guard.start(0.0)
    assert guard.act(np.array([0.0, 0.5]), np.array([0.0, math.nan]), 0.0) is not None
    guard.stop()
    for period in range(30):
        guard.brake_if_held(period * PERIOD_S)
    guard.start(5.0)
    command = guard.act(np.array([1.0, 3.0]), np.array([1.0, math.nan]), 5.0)
    assert listed(command) == [1.0, pytest.approx(0.55)]
    guard.stop()
    for period in range(30):
        guard.brake_if_held(5.0 + period * PERIOD_S)
    guard.start(10.0)
    command = guard.act(np.array([3.0, 3.0]), None, 10.0)
    assert listed(command) == [pytest.approx(1.1), pytest.approx(0.6)]


def test_a_short_hold_makes_no_jerk_though_the_robot_lags() -> None:
    for limit in ({**ARM, "max_step": 0.3}, {**ARM, "max_step": 0.3, "acceleration": 20.0}):
        for periods in (1, 2, HOLDS_AT_REST, HOLDS_AT_REST + 2):
            robot = Robot("positions", limit)
            path = [robot.act(0.0, measured=0.0) or 0.0]
            for _ in range(6):
                robot.wait()
                path.append(robot.act(3.0, measured=path[-1] - 0.05) or 0.0)
            robot.press(False)
            path += robot.wait(periods)
            robot.press(True)
            path.append(robot.act(3.0, measured=path[-1] - 0.05) or 0.0)
            assert (np.diff(path) >= 0.0).all()
            assert Intervention.DISPLACED not in robot.guard.counts


def test_a_hold_that_still_brakes_may_end_elsewhere_without_a_jump() -> None:
    robot = Robot("positions", {**ARM, "max_step": 0.2, "acceleration": 2.0})
    path = [robot.act(0.0, measured=0.0) or 0.0]
    for _ in range(20):
        robot.wait()
        path.append(robot.act(3.0, measured=path[-1]) or 0.0)
    robot.press(False)
    path += robot.wait(2)
    assert robot.guard.moving
    robot.press(True)
    elsewhere = path[-1] - 0.5
    assert robot.act(3.0, measured=elsewhere) is None  # the operator pressed before it was there
    for _ in range(math.ceil(SETTLED_S / PERIOD_S) + 1):
        robot.wait()
        assert robot.act(3.0, measured=elsewhere) is None
    robot.press(False)
    robot.press(True)
    assert abs((robot.act(3.0, measured=elsewhere) or 0.0) - elsewhere) <= 0.2
    assert robot.guard.counts[Intervention.DISPLACED] == 1


def test_what_is_measured_nowhere_near_does_not_end_a_rest() -> None:
    robot = Robot("positions", ARM)
    robot.act(0.0, measured=0.0)
    rest(robot)
    assert robot.act(0.0, measured=1e5) is None
    assert robot.act(1.0, measured=1.0) is None  # a jump, too
    for _ in range(math.ceil(SETTLED_S / PERIOD_S) + 1):
        robot.wait()
        assert robot.act(1.0, measured=1.0) is None
    robot.press(False)
    robot.press(True)
    assert robot.act(1.0, measured=1.0) == 1.0


@pytest.mark.parametrize("measured", [2e9, -1e30])
def test_a_position_that_no_robot_has_is_not_taken_for_an_unknown_one(measured: float) -> None:
    robot = Robot("positions", {"max_step": 0.05})
    assert robot.act(3.0, measured=measured) is None
    assert robot.act(3.0, measured=0.0) == pytest.approx(0.05)
    robot.wait()
    assert robot.act(3.0, measured=measured) == pytest.approx(0.05)
    assert robot.guard.interventions == (Intervention.POSITION,)


def test_a_robot_outside_its_positions_is_led_inwards_by_at_most_a_step() -> None:
    robot = Robot("positions", {"position_low": -1.0, "position_high": 1.0, "max_step": 0.05})
    assert robot.act(0.0, measured=1.15) == pytest.approx(1.1)


def test_a_hold_that_no_one_looked_at_ends_like_any_other() -> None:
    robot = Robot("positions", ARM, require_enable=True)
    robot.press(True)
    robot.act(0.0, measured=0.0)
    robot.now_s += 5.0
    assert robot.act(1.0, measured=1.0) is None
    robot.press(True)
    assert robot.act(1.0, measured=1.0) == 1.0
    robot.now_s += 5.0
    assert robot.act(0.0, measured=0.0) is None
    robot.permission.set_enabled(True, robot.now_s)
    assert robot.act(0.0, measured=0.0) == 0.0
    robot.now_s += 5.0
    robot.press(False)
    assert robot.act(1.0, measured=1.0) is None
    robot.press(True)
    assert robot.act(1.0, measured=1.0) == 1.0
    assert robot.guard.counts[Intervention.DISPLACED] == 3


STEP = 0.1
HOLD_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["act"] * 3 + ["look"] * 2 + ["allow", "forbid", "heard", "withhold", "gap", "stop", "start"]
        ),
        st.floats(0.0, 0.1),
        GARBAGE,
        st.one_of(st.floats(LOW, HIGH), st.none(), st.just(math.nan)),
    ),
    max_size=80,
)


@settings(max_examples=500)
@given(HOLD_EVENTS, st.sampled_from([math.inf, 4.0]))
def test_no_command_that_ends_a_hold_is_over_a_step_from_the_robot(events: Any, acceleration: float) -> None:
    limit = {"position_low": LOW, "position_high": HIGH, "velocity": SPEED, "max_step": STEP}
    robot = Robot("positions", {**limit, "acceleration": acceleration})
    position, held = robot.act(0.0, measured=0.0) or 0.0, False
    for kind, pause_s, wanted, measured in events:
        guard = robot.guard
        robot.now_s += 20.0 * pause_s if kind == "gap" else pause_s
        command: float | None = None
        if kind == "act":
            if held and measured is not None and math.isfinite(measured):
                position = measured  # somebody has moved it
            command = robot.act(wanted, measured if measured is None else position, new=pause_s < 0.09)
            if command is not None and not HELD.intersection(guard.interventions):
                if held and measured is not None:
                    assert abs(command - position) <= STEP + 1e-9
                held = False
        elif kind in ("look", "withhold"):
            holds = guard.brake_if_held if kind == "look" else guard.withhold
            looked = holds(robot.now_s)
            command = None if looked is None else float(looked[0])
        elif kind == "heard":
            guard.observed(robot.now_s)
        elif kind == "stop":
            guard.stop()
        elif kind != "gap":
            robot.happen(kind)
        held = held or kind in ("stop", "start", "forbid") or bool(HELD.intersection(guard.interventions))
        if command is not None:
            assert LOW <= command <= HIGH
            position = command

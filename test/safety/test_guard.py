"""What the guard lets through, and when it holds: every moment is given, no clock is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.guard import HELD, HOLDS_AT_REST, SETTLED_S, Guard, GuardConfig
from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.limits import Limits

PERIOD_S = 0.05
HOLD_AFTER_S = 0.5
LOW, HIGH, SPEED = -1.0, 1.0, 0.5
MARGIN = 0.2  # a robot may be measured so far outside, and be held there
GARBAGE = st.one_of(
    st.floats(-2.0, 2.0), st.sampled_from([math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324])
)


class Robot:
    """A guard with one entry, and the time."""

    def __init__(self, field: str, limit: dict[str, float], **config: Any) -> None:
        self.now_s = 100.0
        limits = Limits.of(["a"], {"a": limit})
        settings = GuardConfig(PERIOD_S, HOLD_AFTER_S, early=0.25, **config)
        self.guard = Guard(Envelope(limits, field, PERIOD_S), settings, self.now_s)
        self.guard.start(self.now_s)

    def wait(self, periods: int = 1) -> list[float]:
        """Let time pass; return what holds the robot meanwhile."""
        held = []
        for _ in range(periods):
            self.now_s += PERIOD_S
            command = self.guard.look(self.now_s)
            if command is not None:
                held.append(float(command[0]))
        return held

    def act(self, wanted: float, measured: float | None = 0.0, new: bool = True) -> float | None:
        if new:
            self.guard.heard(self.now_s)
        where = None if measured is None else np.array([measured])
        command = self.guard.act(np.array([wanted]), where, self.now_s)
        return None if command is None else float(command[0])

    def repeat(self) -> float | None:
        command = self.guard.repeat(self.now_s)
        return None if command is None else float(command[0])


def full_speed(robot: Robot) -> float:
    speed = 0.0
    for _ in range(30):
        speed = robot.act(1.0) or 0.0
        robot.wait()
    return speed


def test_braking_goes_on_through_a_new_start() -> None:
    robot = Robot("velocities", {"velocity": 1.0, "acceleration": 1.0})
    assert full_speed(robot) == 1.0
    robot.guard.stop()
    assert robot.wait() == [pytest.approx(0.95)]
    robot.guard.start(robot.now_s)
    braked = robot.wait(40)
    assert braked[0] < 0.95
    assert braked[-1] == 0.0
    assert (np.diff(braked) <= 0.0).all()
    assert not robot.guard.moving


def test_a_robot_whose_action_is_withheld_is_braked_until_an_action_is_let_through() -> None:
    robot = Robot("velocities", {"velocity": 1.0, "acceleration": 1.0})
    full_speed(robot)
    sent = []
    for _ in range(40):
        robot.guard.heard(robot.now_s)
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


def test_a_robot_that_is_stopped_while_its_actions_are_withheld_says_that_it_is() -> None:
    robot = Robot("positions", {})
    robot.act(0.0)
    robot.guard.forbid(robot.now_s)
    assert robot.guard.withhold(robot.now_s) is not None
    assert robot.guard.interventions == (Intervention.DISABLED,)


def test_an_action_ends_a_hold_and_takes_its_speed_over() -> None:
    robot = Robot("velocities", {"velocity": 1.0, "acceleration": 1.0})
    full_speed(robot)
    robot.guard.forbid(robot.now_s)
    braked = robot.wait(4)
    robot.guard.allow(robot.now_s)
    assert robot.act(1.0) == pytest.approx(braked[-1], abs=1.0 * PERIOD_S + 1e-9)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from([None, 0.5, 5.0, 40.0, 1000.0]))
def test_motion_begins_where_it_is_measured_only_once_no_command_has_moved_the_robot_for_a_while(
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
                begun: list[np.ndarray | None] = []
                patch.setattr(robot.guard._envelope, "begin", begun.append)
                command = robot.act(data.draw(st.floats(-1.0, 1.0)), measured)
            assert not begun or robot.now_s - moved_s >= SETTLED_S
        else:
            if what != "look":
                getattr(robot.guard, f"{what}_until_told")(robot.now_s)
            held = robot.guard.look(robot.now_s)
            command = None if held is None else float(held[0])
        if command is not None:
            moved_s = moved_s if command == sent else robot.now_s
            sent = command


def test_a_repeated_observation_of_before_a_hold_moves_nothing() -> None:
    robot = Robot("positions", {"position_low": -3.0, "position_high": 3.0, "max_step": 0.05})
    robot.act(0.0)
    robot.guard.forbid(robot.now_s)
    robot.wait(math.ceil(SETTLED_S / PERIOD_S) + HOLDS_AT_REST)
    assert robot.act(2.0, measured=2.0) is None
    robot.guard.allow(robot.now_s)
    robot.wait()
    assert robot.repeat() == pytest.approx(2.0)  # what it was owed, from where it is now


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
    robot.guard.allow(robot.now_s)
    assert robot.repeat() == 0.1
    assert robot.repeat() == 0.1


def test_an_answer_that_is_too_late_moves_nothing() -> None:
    robot = Robot("positions", {"position_low": -3.0, "position_high": 3.0})
    robot.act(0.0)
    assert len(robot.wait(20)) == HOLDS_AT_REST
    assert robot.act(1.0, new=False) is None
    assert robot.guard.counts[Intervention.STALE] == 1
    assert robot.wait(5) == []
    assert robot.act(1.0) == 1.0


def test_who_enables_must_go_on_doing_so_where_that_is_required() -> None:
    robot = Robot("velocities", {"velocity": 1.0}, require_enable=True, enable_timeout_s=0.2)
    robot.guard.allow(robot.now_s)
    assert robot.act(0.5) == 0.5
    held = robot.wait(8)
    assert held == [0.0] * HOLDS_AT_REST
    assert not robot.guard.enabled(robot.now_s)
    robot.guard.allow_until_told(robot.now_s)
    robot.wait(100)
    assert robot.guard.enabled(robot.now_s)


def test_a_position_far_outside_moves_nothing_but_one_just_outside_comes_back() -> None:
    robot = Robot("positions", {"position_low": -1.0, "position_high": 1.0, "velocity": 1.0})
    assert robot.act(0.0, measured=1e5) is None
    assert robot.act(0.0, measured=1.1) == pytest.approx(1.05)
    one_sided = Robot("positions", {"position_low": 0.0})
    assert one_sided.act(0.5, measured=-1e-6) == 0.5


# Being told to stop


def stream(robot: Robot, periods: int) -> list[bool]:
    """Let `enable` say true once a period; return whether the robot was enabled after each."""
    said = []
    for _ in range(periods):
        robot.wait()
        robot.guard.allow(robot.now_s)
        said.append(robot.guard.enabled(robot.now_s))
    return said


@pytest.mark.parametrize("required", [True, False])
def test_a_stop_by_the_service_stays_while_the_topic_goes_on_saying_true(required: bool) -> None:
    robot = Robot("positions", {}, require_enable=required)
    assert stream(robot, 3)[-1]
    robot.guard.forbid_until_told(robot.now_s)
    assert not any(stream(robot, 100))
    assert robot.guard.stopped
    assert robot.act(0.1) is None
    robot.guard.allow_until_told(robot.now_s)
    assert robot.guard.enabled(robot.now_s)
    assert not robot.guard.stopped
    assert robot.act(0.1) == 0.1


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("let_go", ["silent", "false"])
def test_after_a_stop_by_the_service_the_topic_must_let_go_before_it_enables(
    required: bool, let_go: str
) -> None:
    robot = Robot("positions", {}, require_enable=required, enable_timeout_s=0.2)
    stream(robot, 3)
    robot.guard.forbid_until_told(robot.now_s)
    assert not any(stream(robot, 3))
    if let_go == "silent":
        robot.wait(3)
        assert not stream(robot, 1)[0]  # that was not long enough
        robot.wait(4)
    else:
        robot.guard.forbid(robot.now_s)
    assert robot.guard.stopped
    assert stream(robot, 1)[0]
    assert not robot.guard.stopped


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("looked", [True, False])
def test_time_in_which_nobody_listened_to_the_topic_is_no_silence(required: bool, looked: bool) -> None:
    robot = Robot("positions", {}, require_enable=required)
    stream(robot, 3)
    robot.guard.forbid_until_told(robot.now_s)
    for _ in range(5):  # the process stands still; what was said meanwhile is heard all at once
        robot.now_s += 10.0
        if looked:
            robot.guard.look(robot.now_s)
        robot.guard.allow(robot.now_s)
        assert not robot.guard.enabled(robot.now_s)
        stream(robot, 3)
    assert robot.guard.stopped


@pytest.mark.parametrize("required", [True, False])
def test_after_a_false_on_the_topic_its_next_true_enables(required: bool) -> None:
    robot = Robot("positions", {}, require_enable=required)
    stream(robot, 3)
    robot.guard.forbid(robot.now_s)
    assert robot.guard.stopped
    assert not robot.guard.enabled(robot.now_s)
    assert stream(robot, 1)[0]


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("active", [True, False])
def test_a_stop_outlasts_a_new_start(required: bool, active: bool) -> None:
    robot = Robot("positions", {}, require_enable=required)
    stream(robot, 3)
    if active:
        robot.guard.forbid_until_told(robot.now_s)
    robot.guard.stop()
    if not active:
        robot.guard.forbid_until_told(robot.now_s)
    assert not any(stream(robot, 30))
    robot.guard.start(robot.now_s)
    assert robot.guard.stopped
    assert not any(stream(robot, 30))
    robot.guard.allow_until_told(robot.now_s)
    assert robot.guard.enabled(robot.now_s)


def test_a_deadman_that_is_let_go_is_no_stop() -> None:
    robot = Robot("positions", {}, require_enable=True, enable_timeout_s=0.2)
    stream(robot, 3)
    robot.wait(10)
    assert not robot.guard.enabled(robot.now_s)
    assert not robot.guard.stopped
    assert stream(robot, 1)[0]


# The end of a hold


ARM = {"position_low": -3.0, "position_high": 3.0, "velocity": 2.0, "max_step": 0.05}


def rest(robot: Robot) -> None:
    """Let the robot come to rest, for whatever reason it is held, and stay there."""
    robot.wait(math.ceil((HOLD_AFTER_S + SETTLED_S) / PERIOD_S) + HOLDS_AT_REST)
    assert not robot.guard.moving


def nothing(robot: Robot) -> None:
    """Nothing more is observed."""


def disabled_for_a_while(robot: Robot) -> None:
    robot.guard.forbid(robot.now_s)
    rest(robot)
    robot.guard.allow(robot.now_s)


def unverified_for_a_while(robot: Robot) -> None:
    for _ in range(30):
        robot.guard.heard(robot.now_s)
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
    command = robot.act(wanted, measured=1.0)
    assert command is not None
    assert abs(command - 1.0) <= 0.05 + 1e-12
    assert robot.guard.counts[Intervention.DISPLACED] == 1
    assert robot.guard.interventions[0] is Intervention.DISPLACED
    robot.wait()
    robot.act(1.0, measured=command)
    assert Intervention.DISPLACED not in robot.guard.interventions


def test_what_is_not_measured_goes_on_from_where_it_was_commanded() -> None:
    limits = Limits.of(["a", "b"], {"a": ARM, "b": {**ARM, "velocity": 1.0}})
    guard = Guard(Envelope(limits, "positions", PERIOD_S), GuardConfig(PERIOD_S, HOLD_AFTER_S), 0.0)
    guard.start(0.0)
    assert guard.act(np.array([0.0, 0.5]), np.array([0.0, math.nan]), 0.0) is not None
    guard.stop()
    for period in range(30):
        guard.look(period * PERIOD_S)
    guard.start(5.0)
    command = guard.act(np.array([1.0, 3.0]), np.array([1.0, math.nan]), 5.0)
    assert command is not None
    assert command.tolist() == [1.0, pytest.approx(0.55)]
    guard.stop()
    for period in range(30):
        guard.look(5.0 + period * PERIOD_S)
    guard.start(10.0)
    command = guard.act(np.array([3.0, 3.0]), None, 10.0)
    assert command is not None
    assert command.tolist() == [pytest.approx(1.1), pytest.approx(0.6)]


def test_a_short_hold_makes_no_jerk_though_the_robot_lags() -> None:
    for limit in ({**ARM, "max_step": 0.3}, {**ARM, "max_step": 0.3, "acceleration": 20.0}):
        for periods in (1, 2, HOLDS_AT_REST, HOLDS_AT_REST + 2):
            robot = Robot("positions", limit)
            path = [robot.act(0.0, measured=0.0) or 0.0]
            for _ in range(6):
                robot.wait()
                path.append(robot.act(3.0, measured=path[-1] - 0.05) or 0.0)
            robot.guard.forbid(robot.now_s)
            path += robot.wait(periods)
            robot.guard.allow(robot.now_s)
            path.append(robot.act(3.0, measured=path[-1] - 0.05) or 0.0)
            assert (np.diff(path) >= 0.0).all()
            assert Intervention.DISPLACED not in robot.guard.counts


def test_a_hold_that_still_brakes_may_end_elsewhere_without_a_jump() -> None:
    robot = Robot("positions", {**ARM, "max_step": 0.2, "acceleration": 2.0})
    path = [robot.act(0.0, measured=0.0) or 0.0]
    for _ in range(20):
        robot.wait()
        path.append(robot.act(3.0, measured=path[-1]) or 0.0)
    robot.guard.forbid(robot.now_s)
    path += robot.wait(2)
    assert robot.guard.moving
    robot.guard.allow(robot.now_s)
    assert abs((robot.act(3.0, measured=-1.0) or 0.0) + 1.0) <= 0.2
    assert robot.guard.counts[Intervention.DISPLACED] == 1


def test_what_is_measured_nowhere_near_does_not_end_a_rest() -> None:
    robot = Robot("positions", ARM)
    robot.act(0.0, measured=0.0)
    rest(robot)
    assert robot.act(0.0, measured=1e5) is None
    assert robot.act(1.0, measured=1.0) == 1.0


@pytest.mark.parametrize("measured", [2e9, -1e30])
def test_a_position_that_no_robot_has_is_not_taken_for_an_unknown_one(measured: float) -> None:
    robot = Robot("positions", {"velocity": 1.0, "max_step": 0.05})
    assert robot.act(3.0, measured=measured) is None
    assert robot.act(3.0, measured=0.0) == pytest.approx(0.05)
    robot.wait()
    assert robot.act(3.0, measured=measured) == pytest.approx(0.05)
    assert robot.guard.interventions == (Intervention.POSITION,)


def test_a_robot_outside_of_its_positions_is_led_inwards_no_further_than_a_step() -> None:
    robot = Robot("positions", {"position_low": -1.0, "position_high": 1.0, "max_step": 0.05})
    assert robot.act(0.0, measured=1.15) == pytest.approx(1.1)


def test_a_hold_that_nobody_looked_at_ends_like_any_other() -> None:
    robot = Robot("positions", ARM, require_enable=True)
    robot.guard.allow(robot.now_s)
    robot.act(0.0, measured=0.0)
    robot.now_s += 5.0
    robot.guard.allow(robot.now_s)
    assert robot.act(1.0, measured=1.0) == 1.0
    robot.now_s += 5.0
    robot.guard.allow_until_told(robot.now_s)
    assert robot.act(-1.0, measured=-1.0) == -1.0
    robot.now_s += 5.0
    assert robot.act(1.0, measured=1.0) == 1.0
    assert robot.guard.counts[Intervention.DISPLACED] == 3


STEP = 0.1
HOLD_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "act",
                "act",
                "act",
                "look",
                "look",
                "allow",
                "forbid",
                "heard",
                "withhold",
                "gap",
                "stop",
                "start",
            ]
        ),
        st.floats(0.0, 0.1),
        GARBAGE,
        st.one_of(st.floats(LOW, HIGH), st.none(), st.just(math.nan)),
    ),
    max_size=80,
)


@settings(max_examples=500)
@given(HOLD_EVENTS, st.sampled_from([math.inf, 4.0]))
def test_no_command_that_ends_a_hold_lies_further_than_a_step_from_the_robot(
    events: Any, acceleration: float
) -> None:
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
            holds = guard.look if kind == "look" else guard.withhold
            looked = holds(robot.now_s)
            command = None if looked is None else float(looked[0])
        elif kind == "heard":
            guard.heard(robot.now_s)
        elif kind == "stop":
            guard.stop()
        elif kind != "gap":
            {"allow": guard.allow, "forbid": guard.forbid, "start": guard.start}[kind](robot.now_s)
        held = held or kind in ("stop", "start", "forbid") or bool(HELD.intersection(guard.interventions))
        if command is not None:
            assert LOW <= command <= HIGH
            position = command


def test_halt_stops_at_once() -> None:
    robot = Robot("velocities", {"velocity": 1.0, "acceleration": 0.2})
    full_speed(robot)
    robot.guard.stop()
    assert robot.wait()[0] > 0.0
    command = robot.guard.halt(robot.now_s)
    assert command is not None
    assert command[0] == 0.0
    assert not robot.guard.moving


def test_halt_stops_where_the_robot_was_commanded_not_where_it_was_measured_long_ago() -> None:
    robot = Robot("positions", {"velocity": 1.0, "acceleration": 0.2})
    for _ in range(80):
        robot.act(9.0, measured=0.0)
        robot.wait()
    robot.guard.stop()
    braked = robot.wait(20)
    command = robot.guard.halt(robot.now_s)
    assert command is not None
    assert command[0] == braked[-1] > 1.0


def test_nothing_goes_out_of_a_guard_that_was_not_started() -> None:
    robot = Robot("positions", {})
    robot.guard.stop()
    assert robot.act(1.0) is None
    assert robot.repeat() is None
    assert robot.wait(30) == []
    robot.guard.allow_until_told(robot.now_s)
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
            held = guard.look(robot.now_s)
            command = None if held is None else float(held[0])
        elif kind == "stop":
            guard.stop()
        else:
            {"allow": guard.allow, "forbid": guard.forbid, "start": guard.start}[kind](robot.now_s)
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
            took_s = sent[last][0] - sent[first][0] + 1.25 * PERIOD_S
            assert abs(sent[last][1] - sent[first][1]) <= SPEED * took_s + 1e-9

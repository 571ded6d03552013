"""A person takes the arm over from the policy, and gives it back: simulated link, real guard and limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adahi_ros.contract.assembler import Observation
from adahi_ros.robot.outcomes import DraftError
from adahi_ros.safety.permission import Press
from adahi_ros.safety.takeover import COMMAND, ENDS, SIGNAL
from test.robot.conftest import PERIOD_S
from test.robot.teleoperated import (
    ACCELERATION,
    DRAFT,
    HORIZON,
    SPEED,
    STEP,
    TIMEOUT_S,
    Arm,
    Teleoperated,
)


@pytest.fixture
def robot(fixed_policy: Callable[..., Any]) -> Teleoperated:
    return Teleoperated(fixed_policy(DRAFT), "always", limit=0, plans=HORIZON).connect()


def test_the_arm_rests_then_moves_as_far_as_the_person_does(robot: Teleoperated) -> None:
    robot.go(10)
    assert not any(record.by_person for record in robot.records)
    robot.press(True)
    robot.command()
    rests = len(robot.arm.sent)
    records = robot.drive(8)
    assert all(record.by_person and not record.transmitted for record in records)
    first = next(place for place, record in enumerate(records) if record.action)
    assert all(holds for _, _, holds in robot.arm.sent[rests : rests + first])
    started = np.array(records[first].action)
    np.testing.assert_allclose(started, robot.arm.at, atol=1e-9)  # without a jump
    robot.drive(10, moved=0.03)
    np.testing.assert_allclose(robot.arm.at, started + 10 * 0.03, atol=1e-9)


def test_the_policy_gets_the_arm_at_rest_and_by_a_new_plan(robot: Teleoperated) -> None:
    robot.go(4)
    robot.drive(12, moved=0.02)
    seen = robot.records[-1].stamp_ns
    robot.press(False)
    before = robot.arm.at
    records = robot.go(12)
    acted = [record for record in records if record.action]
    assert acted
    assert not any(record.by_person for record in acted)
    first = records.index(acted[0])
    assert first > 0
    assert all(record.by_person for record in records[:first])  # the arm comes to rest
    assert acted[0].plan_age >= 0
    assert acted[0].stamp_ns - acted[0].plan_age > seen  # requested after the person
    moves = [command for command in robot.moves if not np.array_equal(command, before)]
    assert np.abs(moves[-len(acted)] - before).max() <= SPEED * PERIOD_S + 1e-9


@pytest.mark.parametrize("noticed", [True, False])
def test_a_plan_from_before_a_person_is_never_executed_after(
    fixed_policy: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, noticed: bool
) -> None:
    """Whether or not the guard noticed a hold meanwhile, which drops plans, too."""
    robot = Teleoperated(fixed_policy(DRAFT), "always", limit=0, plans=64).connect()
    if not noticed:
        monkeypatch.setattr(robot.arm, "resumes", lambda: False)
    assert robot.go(4)[-1].action
    robot.link.loss = 1.0  # no new plan arrives
    robot.drive(2)
    robot.press(False)
    assert not any(record.action for record in robot.go(30))


def test_silence_holds_the_arm_and_does_not_give_it_back(robot: Teleoperated) -> None:
    robot.drive(10, moved=0.02)
    records = robot.go(30)
    assert all(record.by_person for record in records)
    assert [bool(record.action) for record in records[-18:]] == [False] * 18
    assert "no takeover for 0.5 s" in records[-1].message
    assert "or call ~/give_back" in robot.arm.takeover.held(robot.link.now_s)
    at = robot.arm.at
    robot.teleoperator = robot.teleoperator + 1.0  # the teleoperator is moved while the arm is held
    robot.drive(12)
    np.testing.assert_allclose(robot.arm.at, at, atol=1e-9)
    robot.drive(5, moved=0.02)
    np.testing.assert_allclose(robot.arm.at, at + 0.1, atol=1e-9)


@pytest.mark.parametrize("value", [True, False])
def test_an_old_signal_changes_nothing(robot: Teleoperated, value: bool) -> None:
    robot.drive(6)
    robot.press(not value)
    assert "allowed are -0.25 to 0.5 s" in robot.press(value, age_s=0.6)
    assert "allowed" in robot.press(value, age_s=-0.3)
    assert robot.arm.takeover.person is not value


def test_a_false_that_comes_after_a_newer_true_gives_nothing_back(robot: Teleoperated) -> None:
    robot.drive(6)
    robot.link.now_s += 0.3
    robot.press(True)
    assert "sent before the newest true" in robot.press(False, age_s=0.1)
    assert robot.arm.takeover.person
    assert robot.press(False) == ""
    assert not robot.arm.takeover.person


def test_a_true_that_comes_after_a_newer_call_takes_nothing(robot: Teleoperated) -> None:
    robot.drive(6)
    robot.link.now_s += 0.3
    assert robot.arm.takeover.give_back(0.01, robot.link.now_s) == ""
    assert "sent before the arm was given back" in robot.press(True, age_s=0.1)
    assert not robot.arm.takeover.person
    robot.link.now_s += 0.1
    assert robot.press(True) == ""
    assert robot.arm.takeover.person


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e30, -2e9])
def test_a_command_without_numbers_moves_nothing(robot: Teleoperated, bad: float) -> None:
    robot.drive(10, moved=0.02)
    at, wanted = robot.arm.at, np.full(len(robot.teleoperator), bad)
    robot.press(True)
    robot.arm.takeover.command(None if math.isnan(bad) else wanted, 0.0, robot.link.now_s, "NaN")
    (record,) = robot.go(1)
    assert not record.action
    assert "no usable teleop_command" in record.message
    assert np.abs(robot.arm.at - at).max() <= STEP


def test_a_policy_that_fails_now_and_then_does_not_stop_a_person(
    robot: Teleoperated, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot.drive(8)
    at, begin, fails = robot.arm.at.copy(), robot.loop.controller.begin, [False]

    def every_other(*given: Any, **named: Any) -> Any:
        fails[0] = not fails[0]
        if fails[0]:
            raise ValueError("no action")
        return begin(*given, **named)

    monkeypatch.setattr(robot.loop.controller, "begin", every_other)
    for _ in range(20):
        robot.press(True)
        robot.command(-0.02)
        with suppress(DraftError):
            robot.go(1)
        if fails[0]:
            robot.pass_time(PERIOD_S)
    np.testing.assert_allclose(robot.arm.at, at - 0.4, atol=0.05)


def test_an_unnamed_entry_stays(robot: Teleoperated) -> None:
    robot.drive(10)
    at = robot.arm.at
    for _ in range(5):
        wanted = robot.teleoperator + 0.02
        wanted[0] = math.nan
        robot.press(True)
        robot.arm.takeover.command(wanted, 0.0, robot.link.now_s)
        robot.go(1)
    assert robot.arm.at[0] == at[0]
    np.testing.assert_allclose(robot.arm.at[1:], at[1:] + 0.02, atol=1e-9)


def name_only(robot: Teleoperated, places: list[int], moved: float, steps: int) -> None:
    """Let the person move the teleoperator, and name only these joints."""
    for _ in range(steps):
        robot.teleoperator = robot.teleoperator + moved
        wanted = np.full(len(robot.teleoperator), math.nan)
        wanted[places] = robot.teleoperator[places]
        robot.press(True)
        robot.arm.takeover.command(wanted, 0.0, robot.link.now_s)
        robot.go(1)


def test_a_joint_that_the_person_stops_naming_stays_at_its_last_command(robot: Teleoperated) -> None:
    robot.drive(8)
    robot.drive(20, moved=-0.02)
    at = robot.arm.at.copy()
    name_only(robot, [1], -0.02, 30)
    assert abs(robot.arm.at[0] - at[0]) <= TIMEOUT_S * SPEED * 0.02 + 1e-9
    stays = robot.arm.at[0]
    name_only(robot, [1], -0.02, 30)
    assert robot.arm.at[0] == stays
    assert robot.arm.at[1] < at[1] - 0.5


def test_a_joint_that_is_named_later_moves_from_where_both_stand_then(robot: Teleoperated) -> None:
    name_only(robot, [1], 0.02, 20)
    at = robot.arm.at.copy()
    robot.drive(10, moved=0.02)
    np.testing.assert_allclose(robot.arm.at[0], at[0] + 9 * 0.02, atol=1e-9)
    np.testing.assert_allclose(robot.arm.at[1], at[1] + 10 * 0.02, atol=1e-9)


@pytest.mark.parametrize("between", [0, 1])
def test_a_publisher_that_names_joints_in_turns_moves_all_of_them(robot: Teleoperated, between: int) -> None:
    """With several messages in a step, too, of which the last one always names the same joint."""
    robot.drive(8)
    at = robot.arm.at.copy()
    for step in range(30):
        robot.teleoperator = robot.teleoperator + 0.02
        robot.press(True)
        for place in (0, 1) if between else (step % 2,):
            wanted = np.full(len(robot.teleoperator), math.nan)
            wanted[place] = robot.teleoperator[place]
            robot.arm.takeover.command(wanted, 0.0, robot.link.now_s)
        robot.go(1)
    np.testing.assert_allclose(robot.arm.at, at + 30 * 0.02, atol=0.02 + 1e-9)


def test_another_publisher_of_commands_does_not_drive(robot: Teleoperated) -> None:
    robot.drive(10, moved=0.02)
    at = robot.arm.at.copy()
    for _ in range(10):
        robot.press(True)
        robot.arm.takeover.publishers[COMMAND].note_publishers(
            frozenset((b"another",)), None, robot.link.now_s
        )
        robot.teleoperator = robot.teleoperator + 0.02
        said = robot.arm.takeover.command(robot.teleoperator, 0.0, robot.link.now_s)
        assert said
        robot.go(1)
    assert "another publisher than at the takeover" in said
    assert np.abs(robot.arm.at - at).max() <= SPEED**2 / (2 * ACCELERATION) + 2 * SPEED * PERIOD_S
    assert robot.arm.takeover.person


def test_another_publisher_does_not_give_the_arm_back(robot: Teleoperated) -> None:
    robot.drive(6)
    takeover, now_s = robot.arm.takeover, robot.link.now_s
    takeover.publishers[SIGNAL].note_publishers(frozenset(), None, now_s)
    takeover.publishers[SIGNAL].note_publishers(frozenset((b"another",)), None, now_s + 0.05)
    assert "must be of the publisher that took over" in takeover.signal(False, 0.0, now_s + 0.1)
    assert takeover.person
    assert "sent before the newest true" in takeover.give_back(0.4, now_s + 0.1)
    assert "s old by its source timestamp" in takeover.give_back(0.6, now_s + 0.1)
    assert takeover.person
    assert takeover.give_back(0.0, now_s + 0.1) == ""
    assert not takeover.person
    assert takeover.signal(True, 0.0, now_s + 0.2) == ""
    assert takeover.signal(False, 0.0, now_s + 0.3) == ""
    assert not takeover.person


def test_a_false_that_gives_nothing_back_does_not_let_the_person_drive(robot: Teleoperated) -> None:
    """The pedal's program was killed while pressed, and starts again with the pedal released."""
    robot.drive(8, moved=0.02)
    robot.pass_time(1.0)
    takeover = robot.arm.takeover
    for topic_now in (frozenset(), frozenset((b"again",))):
        takeover.publishers[SIGNAL].note_publishers(topic_now, None, robot.link.now_s)
    robot.go(10)
    at = robot.arm.at.copy()
    for _ in range(10):
        assert takeover.signal(False, 0.0, robot.link.now_s)
        robot.command(0.05)
        assert not robot.go(1)[0].action
    assert takeover.person
    np.testing.assert_allclose(robot.arm.at, at, atol=1e-9)


def test_a_takeover_outlasts_another_configuration_that_knows_no_person(robot: Teleoperated) -> None:
    robot.drive(6)
    arm = Arm(lambda: robot.link.now_s, len(robot.arm.at), False, False, robot.arm.permission)
    arm.observed()
    assert arm.guard.act(np.full(len(arm.at), 0.6), arm.at, robot.link.now_s) is None
    assert arm.guard.reason(robot.link.now_s) == f"takeover: {ENDS}"
    robot.press(False)
    assert arm.guard.act(np.full(len(arm.at), 0.6), arm.at, robot.link.now_s) is not None


def test_a_command_of_a_second_publisher_moves_nothing_when_it_has_left(robot: Teleoperated) -> None:
    robot.drive(10)
    at = robot.arm.at.copy()
    for _ in range(3):  # the second one stands elsewhere, and speaks last
        robot.press(True)
        robot.arm.show_publishers(COMMAND, 2)
        robot.arm.takeover.command(robot.teleoperator + 1.0, 0.0, robot.link.now_s)
        robot.go(1)
    robot.arm.show_publishers(COMMAND, 1)
    robot.press(True)
    robot.arm.takeover.command(robot.teleoperator + 1.0, 0.0, robot.link.now_s - 0.01, "", 0.02)  # queued
    robot.go(1)
    robot.drive(20)
    np.testing.assert_allclose(robot.arm.at, at, atol=1e-9)


@pytest.mark.parametrize("topic", ["takeover", "teleop_command"])
def test_two_teleoperators_hold_the_arm(robot: Teleoperated, topic: str) -> None:
    robot.drive(8, moved=0.02)
    for _ in range(6):
        robot.press(True, publishers=1 + (topic == "takeover"))
        robot.command(0.02, publishers=1 + (topic == "teleop_command"))
        (record,) = robot.go(1)
    assert not record.action
    assert f"several publishers of {topic}" in record.message
    if topic == "takeover":  # neither gives the arm back to the policy
        assert "must be of the publisher that took over, alone" in robot.press(False, publishers=2)
    assert robot.arm.takeover.person


def test_a_reply_in_flight_never_moves_the_arm_of_a_person(robot: Teleoperated) -> None:
    robot.go(3)
    robot.link.delay_s = (0.2, 0.2)
    robot.go(1)
    pending = len(robot.session.submitted)
    robot.drive(10)
    at = robot.arm.at
    robot.drive(10)
    np.testing.assert_allclose(robot.arm.at, at, atol=1e-9)
    assert len(robot.session.submitted) == pending
    assert all(each.fate.name != "PENDING" for each in robot.session.submitted)


def test_a_step_that_waits_for_its_reply_is_the_persons(fixed_policy: Callable[..., Any]) -> None:
    robot = Teleoperated(fixed_policy(DRAFT), "always", limit=0).connect()
    robot.drive(8)
    robot.press(False)
    robot.go(8)
    robot.step += 1
    robot.see(1, robot.step)  # its request is in flight
    robot.press(True)
    robot.command()
    at = robot.arm.at
    robot.pass_time(0.2)
    assert robot.record_of(robot.step).by_person
    for _ in range(10):  # it brakes
        robot.drive(1)
    assert np.abs(robot.arm.at - at).max() <= SPEED**2 / (2 * ACCELERATION) + 2 * SPEED * PERIOD_S


def test_a_person_drives_without_a_verifier_at_once(fixed_policy: Callable[..., Any]) -> None:
    robot = Teleoperated(fixed_policy(DRAFT), "always", limit=0, plans=HORIZON)
    robot.loop.start(60.0)
    robot.drive(2)
    records = robot.drive(8, moved=0.02)
    assert records[-1].action
    assert (robot.loop.totals.unattended, robot.loop.totals.commanded) == (0, 0)


def test_a_released_deadman_stops_and_a_press_starts_at_rest(fixed_policy: Callable[..., Any]) -> None:
    robot = Teleoperated(fixed_policy(DRAFT), "always", limit=0, plans=HORIZON, required=True).connect()
    numbers = iter(range(1, 10_000))

    def deadman(value: bool) -> None:
        now_s = robot.link.now_s
        robot.arm.permission.publishers.note_publishers(frozenset((b"deadman",)), None, now_s)
        robot.arm.permission.receive(Press(value, now_s, 0.0, next(numbers)), now_s)

    deadman(False)
    for _ in range(12):
        deadman(True)
        robot.drive(1, moved=0.02)
    assert robot.records[-1].action
    deadman(False)
    robot.drive(8, moved=0.02)
    at = robot.arm.at
    assert not robot.records[-1].action
    robot.drive(10, moved=0.05)  # the teleoperator goes on
    np.testing.assert_allclose(robot.arm.at, at, atol=1e-9)
    for _ in range(8):
        deadman(True)
        robot.drive(1)
    np.testing.assert_allclose(robot.arm.at, at, atol=1e-9)  # not where the teleoperator went meanwhile
    assert robot.records[-1].action


def test_a_node_that_starts_again_needs_current_messages(robot: Teleoperated) -> None:
    robot.drive(10, moved=0.02)
    robot.loop.stop()
    robot.arm.publish(robot.arm.commands.stop(robot.link.now_s))
    robot.pass_time(2.0)
    robot.arm.commands.start(robot.link.now_s)
    robot.loop.start(0.0)
    at = robot.arm.at
    records = robot.go(5)
    assert all(record.by_person and not record.action for record in records)
    np.testing.assert_allclose(robot.arm.at, at, atol=1e-9)
    robot.drive(5)
    np.testing.assert_allclose(robot.arm.at, at, atol=1e-9)


EVENTS = st.sampled_from(
    [
        *["step"] * 8,
        *("true", "false", "true", "old true", "old false", "two true", "two false"),
        *("command", "command", "command", "old command", "two commands", "nan", "inf", "jump"),
        *("look", "wait", "stop", "enable", "lose", "repeat"),
    ]
)


@pytest.mark.parametrize("interpolated", [False, True])
def test_whatever_happens_no_jump_and_no_second_driver(
    interpolated: bool, fixed_policy: Callable[..., Any]
) -> None:
    @settings(max_examples=60, deadline=None, database=None)
    @given(events=st.lists(EVENTS, min_size=10, max_size=80), waits=st.booleans())
    def check(events: list[str], waits: bool) -> None:
        plans = 0 if waits else HORIZON
        happen(
            Teleoperated(
                fixed_policy(DRAFT), "always", limit=0, plans=plans, interpolated=interpolated
            ).connect(),
            events,
        )

    check()


def happen(robot: Teleoperated, events: list[str]) -> None:
    """Let events happen; check after each what holds for all of them."""
    takeover, rng, watched = robot.arm.takeover, np.random.default_rng(0), 0
    shown: Observation | None = None
    for event in events:
        about = {"age_s": 0.7} if "old" in event else {"publishers": 2} if "two" in event else {}
        if event in ("step", "repeat"):
            robot.step += event == "step"
            drives, usable = takeover.person, not takeover.held(robot.link.now_s)
            before, count = robot.arm.at, len(robot.records)
            rested, enabled = not robot.arm.guard.moving, robot.arm.guard.enabled(robot.link.now_s)
            last = robot.records[-1] if robot.records else None
            if event == "step" or shown is None:
                shown = robot.observation(1, robot.step)
            robot.show(shown)
            for record in robot.records[count:]:
                assert enabled or not record.action
                if drives:
                    assert record.by_person
                    assert usable or not record.action
                    # A request from before the person came may have waited, or its observation is repeated.
                    assert not record.transmitted or record.step < robot.step or event == "repeat"
                if record.action and last is not None and not (last.action and last.by_person == drives):
                    assert rested or not (drives or last.by_person)
                    if drives:  # the arm starts where it is, wherever the teleoperator stands
                        np.testing.assert_allclose(record.action, before, atol=1e-6)
                last = record
            assert np.abs(robot.arm.at - before).max() <= 2 * SPEED * PERIOD_S + 1e-9
            robot.pass_time(PERIOD_S)
            robot.arm.look()
        elif "true" in event or "false" in event:
            robot.press("true" in event, **about)
        elif "command" in event:
            robot.command(float(rng.uniform(-0.1, 0.1)), **about)
        elif event == "jump":
            robot.command(float(rng.uniform(-50.0, 50.0)))
        elif event in ("nan", "inf"):
            wanted = None if event == "nan" else np.full(len(robot.teleoperator), math.inf)
            takeover.command(wanted, 0.0, robot.link.now_s, "NaN")
        elif event == "look":
            robot.arm.look()
        elif event == "wait":
            robot.pass_time(0.6)
            robot.arm.look()
        elif event in ("stop", "enable"):
            robot.arm.permission.set_enabled(event == "enable", robot.link.now_s)
        elif event == "lose":
            robot.link.loss = float(rng.choice([0.0, 1.0]))
        watched = _check_motion(robot.arm, watched)


def _check_motion(arm: Arm, watched: int) -> int:
    """Check that consecutive commands are within the limits, as a controller would see them."""
    for place in range(max(1, watched), len(arm.sent)):
        (before_s, before, _), (now_s, now, _) = arm.sent[place - 1 : place + 1]
        elapsed_s = min(PERIOD_S, max(now_s - before_s, 0.0))
        moved = np.abs(now - before).max()
        assert moved <= SPEED * PERIOD_S + 1e-9, (place, elapsed_s, moved)
    return len(arm.sent)

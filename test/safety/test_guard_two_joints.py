"""What one joint of several, a hold without a press, or an unknown place does to an arm."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adahi_ros.contract.contract import (
    GOALS,
    Action,
    Alignment,
    Channel,
    MeasuredPositions,
    Sink,
    Source,
)
from adahi_ros.safety.commands import Commands
from adahi_ros.safety.envelope import HOLDS_AT_REST, WINDOW_S, Envelope
from adahi_ros.safety.guard import Guard, GuardConfig
from adahi_ros.safety.holds import Event
from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.measured_jumps import SETTLED_S
from adahi_ros.safety.permission import Permission, Press
from test.safety.conftest import HOLD_AFTER_S, PERIOD_S, Robot

ARM = {"position_low": -3.0, "position_high": 3.0, "velocity": 2.0, "max_step": 0.2}
AT = (0.5, -0.5)
TRAJECTORY = Channel("command", "trajectory_msgs/msg/JointTrajectory")
ALIGNED = Alignment("hold", "receive", 1.0)


class TwoJoints:
    """An arm with joints a and b, which was started; it needs no enabling."""

    def __init__(
        self,
        hold_after_s: float = HOLD_AFTER_S,
        b: str = "positions",
        interpolated: bool = False,
        **limit: float,
    ) -> None:
        limit = {**ARM, **limit}
        self.permission, self.now_s = Permission(False, 0.5), 100.0
        self.permission.publishers.note_publishers(frozenset((b"deadman",)), None, self.now_s)
        self.published = 0
        envelope = Envelope(
            Limits.from_fields(["a", "b"], {"a": limit, "b": limit}), ["positions", b], PERIOD_S
        )
        config = GuardConfig(PERIOD_S, hold_after_s, interpolated)
        self.guard = Guard(envelope, config, self.permission, self.now_s)
        self.guard.start(self.now_s)

    def act(
        self, a: float, b: float, measured: tuple[float, float] | None = AT, stamp_s: float | None = None
    ) -> list[float] | None:
        self.guard.observed(self.now_s)
        where = None if measured is None else np.array(measured)
        command = self.guard.act(np.array([a, b]), where, self.now_s, stamp_s)
        return None if command is None else [float(each) for each in command]

    def wait(self, periods: int = 1) -> list[list[float]]:
        """Let time pass; return what is commanded meanwhile."""
        sent = []
        for _ in range(periods):
            self.now_s += PERIOD_S
            command = self.guard.brake_if_held(self.now_s)
            if command is not None:
                sent.append(command.tolist())
        return sent

    def publish(self, value: bool) -> None:
        """Receive a message on `enable`."""
        self.published += 1
        self.permission.receive(Press(value, self.now_s, 0.0, self.published), self.now_s)


def test_one_joint_far_outside_holds_the_arm_and_repeats_nothing() -> None:
    arm, near = TwoJoints(), (0.5, -2.9)
    assert arm.act(*near, measured=near) == list(near)
    arm.wait(3)
    assert arm.act(*near, measured=(0.5, -3.7)) is None
    assert arm.guard.reason(arm.now_s) == "position: b is -3.7, its limits are -3 to 3"
    assert arm.guard.repeat(arm.now_s) is None


def test_an_arm_is_where_it_was_commanded_joint_by_joint() -> None:
    arm = TwoJoints()
    assert arm.act(*AT) == list(AT)
    arm.wait(4)  # a gap
    assert arm.act(*AT) == list(AT)


@pytest.mark.parametrize("hold", ["a gap", "withheld"])
def test_an_arm_that_was_pushed_during_a_hold_waits_for_a_press(hold: str) -> None:
    arm = TwoJoints(acceleration=10.0)
    assert arm.act(*AT) == list(AT)
    for step in range(1, 8):  # slower than a jump
        arm.now_s += PERIOD_S
        if hold == "withheld":
            arm.guard.observed(arm.now_s)
            arm.guard.withhold(arm.now_s)
        where = (0.5 + 0.05 * step, -0.5)
    assert arm.act(*AT, measured=where) is None
    assert arm.guard.interventions == (Intervention.MEASURED,)
    assert "a is at 0.85 and was commanded to 0.5" in arm.guard.reason(arm.now_s)


def test_an_arm_that_is_pushed_during_a_short_hold_waits_for_a_press() -> None:
    arm = TwoJoints()
    assert arm.act(*AT) == list(AT)
    arm.wait()
    arm.guard.observed(arm.now_s)
    assert arm.guard.withhold(arm.now_s) is not None
    arm.wait()
    assert arm.act(*AT, measured=(0.8, -0.5)) is None  # slower than a jump
    assert arm.permission.needs_press


def test_a_jump_is_judged_by_the_stamps_of_the_measurements() -> None:
    arm = TwoJoints()
    assert arm.act(*AT, stamp_s=7.0) == list(AT)
    arm.now_s += PERIOD_S
    assert arm.act(1.0, -0.5, measured=(1.0, -0.5), stamp_s=8.0) is not None


def test_no_press_ends_a_jump_before_it_was_steady_for_a_while() -> None:
    robot = Robot("positions", ARM)
    for _ in range(20):
        robot.act(0.5, measured=0.5)
        robot.wait()
    robot.act(0.5, measured=2.5)
    jumped_s = robot.now_s
    while robot.now_s < jumped_s + 3 * SETTLED_S:
        robot.wait()
        robot.permission.set_enabled(True, robot.now_s)  # in vain until it is steady
        moves, after_s = robot.act(2.5, measured=2.5) is not None, robot.now_s - jumped_s
        assert moves or after_s < SETTLED_S + 2.5 * PERIOD_S
        assert not moves or after_s > SETTLED_S


def test_after_a_following_error_no_former_action_is_repeated() -> None:
    arm = TwoJoints()
    assert arm.act(*AT) == list(AT)
    arm.permission.holds.happen(Event.LAGS, "a lag")
    assert arm.act(0.6, -0.5) is None
    arm.permission.set_enabled(True, arm.now_s)
    assert arm.guard.repeat(arm.now_s) is None


def test_an_arm_that_braked_repeats_nothing_of_before() -> None:
    arm = TwoJoints(acceleration=4.0)
    for _ in range(5):
        assert arm.act(2.0, -0.5, measured=None) is not None
        arm.now_s += PERIOD_S
    arm.wait(math.ceil(HOLD_AFTER_S / PERIOD_S) + 20)
    assert not arm.guard.moving
    arm.guard.observed(arm.now_s)
    assert arm.guard.repeat(arm.now_s) is None


@pytest.mark.parametrize("measured", [None, AT])
def test_no_number_before_a_place_is_known_commands_nothing(measured: tuple[float, float] | None) -> None:
    arm = TwoJoints()
    assert arm.act(math.nan, 0.0, measured=None) is None
    arm.wait()
    for _ in range(math.ceil(2 * WINDOW_S / PERIOD_S)):
        assert arm.act(*AT, measured=measured) == list(AT)
        arm.wait()


@pytest.mark.parametrize("late_s", [0.08, 0.1, 0.2, 0.4])
@pytest.mark.parametrize("where", [(3.9, -0.5), (1.1, -0.5)])
@pytest.mark.parametrize("stop", ["disabled", "shared", "deactivated", "silent"])
def test_no_stop_brings_an_arm_back_that_was_moved_in_a_gap(
    late_s: float, where: tuple[float, float], stop: str
) -> None:
    arm = TwoJoints(acceleration=10.0)
    for _ in range(6):
        assert arm.act(*AT) is not None
        arm.now_s += PERIOD_S
    arm.now_s += late_s - PERIOD_S
    sent = [arm.act(*AT, measured=where)]
    for step in range(40):
        arm.now_s += PERIOD_S
        if step == 20:
            if stop == "disabled":
                arm.permission.set_enabled(False, arm.now_s)
            elif stop == "shared":
                arm.permission.holds.happen(Event.COMMANDED_TWICE)
            elif stop == "deactivated":
                arm.guard.stop()
        if step < 20 or stop != "silent":
            sent.append(arm.act(*AT, measured=where))
        command = arm.guard.brake_if_held(arm.now_s)
        sent.append(None if command is None else command.tolist())
    assert sent == [None] * len(sent)
    assert not arm.guard.moving


def test_an_arm_that_leads_its_commands_is_no_displaced_one() -> None:
    arm = TwoJoints()
    arm.act(0.0, 0.0, measured=(0.0, 0.0))
    arm.wait()
    assert arm.act(0.3, 0.0, measured=(0.3, 0.0)) == pytest.approx([0.1, 0.0])
    assert Intervention.DISPLACED not in arm.guard.counts


def test_after_a_long_gap_motion_begins_where_the_arm_is_measured() -> None:
    arm = TwoJoints(hold_after_s=2.0, velocity=1.0)
    arm.act(0.0, 0.0, measured=(0.0, 0.0))
    arm.now_s += 1.2 * SETTLED_S
    assert arm.act(0.15, 0.0, measured=(0.15, 0.0)) == [0.15, 0.0]


@pytest.mark.parametrize("looks", [1, HOLDS_AT_REST])
def test_after_a_late_hold_motion_begins_where_the_arm_is_measured(looks: int) -> None:
    arm = TwoJoints(hold_after_s=2.0)
    arm.act(0.0, 0.0, measured=(0.0, 0.0))
    arm.now_s += SETTLED_S
    arm.permission.set_enabled(False, arm.now_s)
    assert arm.wait(looks) == []
    arm.permission.set_enabled(True, arm.now_s)
    assert arm.act(0.15, 0.0, measured=(0.15, 0.0)) == [0.15, 0.0]


def test_an_activation_without_a_stop_begins_where_the_arm_is_measured() -> None:
    arm = TwoJoints()
    arm.act(0.0, 0.0, measured=(0.0, 0.0))
    arm.wait()
    arm.guard.start(arm.now_s)
    assert arm.act(1.0, 0.0, measured=(1.0, 0.0)) == [1.0, 0.0]
    arm.guard.stop()
    arm.wait(math.ceil(2 * HOLD_AFTER_S / PERIOD_S))
    arm.guard.start(arm.now_s)
    assert "stale" not in arm.guard.reason(arm.now_s)


def test_an_arm_at_rest_starts_where_it_was_commanded_or_is_measured() -> None:
    arm = TwoJoints(continuous=True, position_low=-math.inf, position_high=math.inf)
    near, far = np.array([0.55 - 2 * math.pi, -0.5]), np.array([0.9, math.nan])

    def place(measured: np.ndarray | None) -> list[float] | None:
        at = arm.guard.place(measured, arm.now_s)
        return None if at is None else [float(each) for each in at]

    assert place(None) is None
    assert place(np.array(AT)) == list(AT)
    arm.act(*AT)
    assert place(None) == place(near) == list(AT)
    assert place(far) == [0.9, -0.5]
    arm.now_s += SETTLED_S + PERIOD_S
    assert place(near) == pytest.approx([0.55, -0.5])


def test_after_a_long_brake_an_arm_goes_on_from_its_last_command() -> None:
    robot = Robot("positions", {**ARM, "acceleration": 2.0})
    at, braked = [0.0, 0.0], []
    while at[-1] < 1.0:
        at.append(robot.act(9.0, measured=at[-1]) or 9.0)
        robot.wait()
    robot.act(9.0, measured=at[-1])
    robot.press(False)
    while robot.guard.moving:
        braked += robot.wait()
    assert len(braked) * PERIOD_S > SETTLED_S
    robot.press(True)
    assert robot.act(braked[-1], measured=braked[-1] - 0.1) == braked[-1]


def test_what_is_no_position_may_be_measured_anywhere_after_a_hold() -> None:
    robot = Robot("velocities", {"velocity": 1.0})
    assert robot.act(0.5, measured=0.7) == 0.5
    robot.guard.observed(robot.now_s)
    robot.guard.withhold(robot.now_s)
    robot.wait()
    assert robot.act(0.5, measured=0.7) == 0.5


def test_a_joint_that_goes_on_in_a_gap_is_stopped_beside_one_that_stands() -> None:
    arm = TwoJoints(b="velocities", acceleration=10.0)
    for _ in range(6):
        arm.act(0.5, 0.5, measured=(0.5, 0.0))
        arm.now_s += PERIOD_S
    arm.now_s += 2 * PERIOD_S
    assert arm.act(0.5, 0.5, measured=(0.5, 5.0)) == [0.5, 0.0]
    assert arm.guard.holding


@pytest.mark.parametrize("interpolated", [False, True])
def test_a_velocity_beside_positions_ends_at_a_stop_in_a_new_episode(interpolated: bool) -> None:
    arm = TwoJoints(b="velocities", interpolated=interpolated)
    for _ in range(6):
        arm.act(0.5, 0.5, measured=(0.5, 0.0))
        arm.now_s += PERIOD_S
    arm.publish(False)
    arm.guard.new_episode()
    assert arm.act(0.5, 0.5, measured=(0.5, 0.0)) is None
    assert [speed for _, speed in arm.wait(20)][-1:] == [0.0]
    assert not arm.guard.moving


def test_a_hold_between_two_looks_ends_like_any_other() -> None:
    arm = TwoJoints()
    arm.act(0.0, 0.0, measured=(0.0, 0.0))
    arm.permission.set_enabled(False, arm.now_s)
    arm.now_s += PERIOD_S
    assert arm.act(0.0, 0.0, measured=(0.45, 0.0)) is None
    arm.permission.set_enabled(True, arm.now_s)
    assert arm.act(0.45, 0.0, measured=(0.45, 0.0)) == [0.45, 0.0]
    assert arm.guard.interventions == (Intervention.DISPLACED,)


def in_motion(b: str = "positions") -> TwoJoints:
    """An arm that has moved for a while, and then got no command for four periods."""
    arm = TwoJoints(b=b, acceleration=10.0)
    for step in range(10):
        a = 0.05 * step
        assert arm.act(a, 0.0, measured=(a, 0.0)) is not None
        arm.now_s += PERIOD_S
    arm.now_s += 3.0 * PERIOD_S
    return arm


@pytest.mark.parametrize("stop", ["released", "called", "deactivated", "silent", "halted", "withheld"])
def test_a_stop_in_a_gap_sends_positions_nothing(stop: str) -> None:
    arm, sent = in_motion(), []
    if stop == "released":
        arm.publish(False)
    elif stop == "called":
        arm.permission.set_enabled(False, arm.now_s)
    elif stop == "deactivated":
        arm.guard.stop()
    elif stop == "halted":
        sent.append(arm.guard.halt(arm.now_s))
    elif stop == "withheld":  # where someone has moved it meanwhile
        arm.guard.observed(arm.now_s)
        sent.append(arm.guard.withhold(arm.now_s, measured=np.array([1.0, 0.0])))
    assert sent in ([], [None])
    assert arm.wait(20) == []
    assert not arm.guard.moving
    assert arm.guard.resting.all()


@pytest.mark.parametrize("stop", ["released", "deactivated", "silent", "jumps", "outside"])
def test_in_a_gap_only_velocities_are_braked_of_an_arm_with_both(stop: str) -> None:
    arm = in_motion("velocities")
    if stop == "released":
        arm.publish(False)
    elif stop == "deactivated":
        arm.guard.stop()
    elif stop != "silent":
        assert arm.act(0.5, 0.0, measured=(2.0 if stop == "jumps" else 3.9, 0.0)) is None
    braked = arm.wait(20)
    assert [command[1] for command in braked] == [0.0] * len(braked)
    assert len(braked) > 0
    assert arm.guard.resting.tolist() == [True, False]  # so the first joint's commands are not sent
    assert not arm.guard.moving


@pytest.mark.parametrize("left", [0, 1])
def test_a_joint_that_was_left_is_sent_nothing_until_motion_begins(left: int) -> None:
    """Its controller executes another program's goal, which any message would end, or is slow."""
    arm = in_motion("velocities")
    arm.publish(False)
    arm.wait()
    arm.guard.leave(np.arange(2) == left, arm.now_s)
    left_s = arm.now_s
    while arm.guard.moving:
        assert arm.guard.resting[left]
        arm.wait()
    arm.publish(True)
    arm.now_s += PERIOD_S
    while arm.now_s < left_s + SETTLED_S:
        assert arm.act(0.5, 0.1) is None
        assert not arm.guard.at_rest(arm.now_s)
        arm.now_s += PERIOD_S
    assert arm.act(0.5, 0.1) is not None
    assert not arm.guard.resting[left]


def test_a_joint_that_was_left_starts_where_it_is_though_another_braked() -> None:
    """What was computed for it meanwhile was not sent."""
    arm = TwoJoints(b="positions", acceleration=1.0)
    at = [0.0, 0.0]
    for _ in range(20):
        arm.now_s += PERIOD_S
        at = arm.act(3.0, 3.0, measured=(at[0], at[1])) or at
    left_at = at[0]
    arm.guard.leave(np.array([True, False]), arm.now_s)
    arm.publish(False)
    braked = arm.wait(30)
    assert braked[-1][1] > at[1] + 0.1
    arm.publish(True)
    arm.now_s += PERIOD_S
    command = arm.act(left_at, braked[-1][1], measured=(left_at, braked[-1][1]))
    assert command is not None
    assert command[0] == pytest.approx(left_at)


@pytest.mark.parametrize("b", ["positions", "velocities"])
def test_a_hold_that_begins_in_a_gap_lets_no_pushed_arm_go_back(b: str) -> None:
    arm = in_motion(b)
    while not arm.guard.resting[0]:  # until the silence holds it, after half a second
        arm.wait()
    command = arm.act(0.45, 0.0, measured=(0.6, 0.0))
    assert command is not None
    assert command[0] > 0.55


@pytest.mark.parametrize("b", ["positions", "velocities"])
@pytest.mark.parametrize("episode", [False, True])
def test_a_joint_at_rest_starts_where_it_is_measured_though_another_brakes(b: str, episode: bool) -> None:
    arm = TwoJoints(b=b, acceleration=0.4)
    place = 0.0
    for _ in range(60):
        arm.now_s += PERIOD_S
        command = arm.act(0.5, 2.0, measured=(0.5, place))
        assert command is not None
        place = command[1]
    arm.publish(False)
    braked = arm.wait(math.ceil(SETTLED_S / PERIOD_S) + 2 * HOLDS_AT_REST)
    if episode:
        arm.guard.new_episode()
        braked += arm.wait()
    assert arm.guard.moving or (episode and b == "positions")
    arm.publish(True)
    arm.now_s += PERIOD_S
    command = arm.act(0.6, braked[-1][1], measured=(0.6, braked[-1][1]))
    assert command is not None
    assert command[0] == pytest.approx(0.6)


def test_a_new_episode_ends_the_braking_of_a_velocity() -> None:
    arm = TwoJoints(b="velocities", acceleration=1.0)
    for _ in range(30):
        arm.now_s += PERIOD_S
        arm.act(0.5, 1.0, measured=(0.5, 0.0))
    arm.publish(False)
    (command,) = arm.wait()
    assert command[1] > 0.5
    arm.guard.new_episode()
    assert {velocity for _, velocity in arm.wait(HOLDS_AT_REST)} == {0.0}


@pytest.mark.parametrize("stop", ["released", "deactivated"])
def test_positions_at_rest_are_not_sent_while_a_velocity_brakes(stop: str) -> None:
    arm = TwoJoints(b="velocities", acceleration=1.0)
    for _ in range(30):
        arm.now_s += PERIOD_S
        assert arm.act(0.5, 1.0, measured=(0.5, 0.0)) is not None
        assert not arm.guard.resting.any()
    arm.publish(False) if stop == "released" else arm.guard.stop()
    sent = []
    while arm.guard.moving:
        [command] = arm.wait()
        sent.append(not arm.guard.resting[0])
    assert command[1] == 0.0
    assert sent[: HOLDS_AT_REST + 1] == [True] * HOLDS_AT_REST + [False]
    assert not any(sent[HOLDS_AT_REST:])
    assert len(sent) > 2 * HOLDS_AT_REST


def test_a_press_before_an_arm_was_moved_does_not_accept_its_place() -> None:
    arm, where = in_motion(), (1.2, 0.0)
    arm.publish(False)
    assert arm.act(0.5, 0.0, measured=(0.45, 0.0)) is None
    arm.wait(math.ceil((HOLD_AFTER_S + SETTLED_S) / PERIOD_S))  # nothing is observed
    arm.publish(True)
    arm.wait()
    for _ in range(math.ceil(SETTLED_S / PERIOD_S) + 2):
        assert arm.act(0.5, 0.0, measured=where) is None
        assert "a is at 1.2 and was commanded to 0.45" in arm.guard.reason(arm.now_s)
        arm.wait()
    arm.publish(False)
    arm.publish(True)
    command = arm.act(0.5, 0.0, measured=where)
    assert command is not None
    assert abs(command[0] - where[0]) <= ARM["max_step"] + 1e-9


def test_a_press_accepts_where_an_arm_was_measured_before() -> None:
    arm, where = in_motion(), (1.2, 0.0)
    arm.publish(False)
    arm.wait(math.ceil((HOLD_AFTER_S + SETTLED_S) / PERIOD_S))
    assert arm.act(0.5, 0.0, measured=where) is None
    arm.publish(True)
    command = arm.act(0.5, 0.0, measured=where)
    assert command is not None
    assert abs(command[0] - where[0]) <= ARM["max_step"] + 1e-9


def test_one_that_was_moved_further_after_the_press_waits_for_another() -> None:
    arm = in_motion()
    arm.publish(False)
    arm.wait(math.ceil((HOLD_AFTER_S + SETTLED_S) / PERIOD_S))
    assert arm.act(0.5, 0.0, measured=(1.0, 0.0)) is None
    arm.permission.takeover.signal(True, 0.0, arm.now_s)
    arm.publish(True)
    arm.wait(2)
    assert arm.guard.withhold(arm.now_s, measured=np.array([1.4, 0.0])) is None  # the person drives
    arm.permission.takeover.give_back(0.0, arm.now_s)
    assert arm.act(0.5, 0.0, measured=(1.4, 0.0)) is None
    assert "a is at 1.4" in arm.guard.reason(arm.now_s)


def test_a_press_accepts_no_place_that_was_unknown() -> None:
    arm = in_motion()
    arm.publish(False)
    assert arm.act(0.5, 0.0, measured=(math.nan, 0.0)) is None
    arm.wait(math.ceil((HOLD_AFTER_S + SETTLED_S) / PERIOD_S))
    arm.publish(True)
    assert arm.act(0.5, 0.0, measured=(1.2, 0.0)) is None


def test_an_arm_that_was_moved_while_braking_stalled_is_not_brought_back() -> None:
    arm = TwoJoints(acceleration=10.0)
    for step in range(10):
        assert arm.act(0.05 * step, 0.0, measured=(0.05 * step, 0.0)) is not None
        arm.now_s += PERIOD_S
    arm.publish(False)
    assert arm.guard.brake_if_held(arm.now_s) is not None
    arm.now_s += 4 * PERIOD_S  # the process was suspended, and the arm moved
    assert arm.wait(20) == []


def test_a_gripper_gets_no_goal_until_a_command_has_reached_the_arm() -> None:
    arm, reached = TwoJoints(b=GOALS, interpolated=True), False
    sources = (Source(name, TRAJECTORY, (f"positions.{name}",), ALIGNED, ()) for name in "ab")
    commands = Commands(
        arm.guard, Action(tuple(map(Sink, sources))), MeasuredPositions(("a", "b"), (0, 1)), lambda: reached
    )
    for step in range(6):
        arm.now_s += PERIOD_S
        arm.guard.observed(arm.now_s)
        reached = step > 3
        sent = commands.limit(np.array([0.5, 0.4]), np.array([0.45, 0.3]), arm.now_s)
        assert sent.command is not None
        assert (sent.left is not None and sent.left.tolist() == [False, True]) == (not reached)
        assert sent.command[1] == (0.4 if reached else 0.3)


def test_an_arm_whose_controllers_all_ended_in_motion_is_reported_as_held() -> None:
    arm = TwoJoints()
    arm.act(0.5, 0.5)
    arm.guard.leave(np.ones(2, dtype=bool), arm.now_s)
    arm.permission.driver("a_controller has ended", True)
    assert not arm.wait()
    assert arm.guard.holding
    assert arm.guard.interventions == (Intervention.DRIVER,)

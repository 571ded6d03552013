"""A person takes over while points of a plan are on their way to the controller."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adahi_ros.contract.contract import MeasuredPositions
from adahi_ros.safety.commands import Commands, Outgoing
from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.guard import Guard, GuardConfig
from adahi_ros.safety.permission import Permission
from adahi_ros.safety.person_commands import PersonCommands
from test.safety.conftest import HOLD_AFTER_S, PERIOD_S, limits_of
from test.safety.curved_arm import BRAKES_M, HIGH, LOW, SPEED, STEPS, Arm


class Units:
    """The wire format of an action in the policy's units."""

    def to_wire(self, values: np.ndarray) -> np.ndarray:
        return values

    def from_wire(self, values: np.ndarray) -> np.ndarray:
        return values


class Driven(Arm):
    """An arm whose controller follows a curve, with a person beside it."""

    def __init__(self) -> None:
        super().__init__()
        measured = MeasuredPositions(("a",), (0,))
        commands = Commands(self.guard, Units(), measured)  # type: ignore[arg-type]
        self.takeover = self.guard.permission.takeover
        self.takeover.timeout_s = 60.0
        for publishers in self.takeover.publishers.values():
            publishers.note_publishers(frozenset((b"person",)), None, self.now_s)
        self.person = PersonCommands(self.takeover, commands, self.guard, ["positions"], measured)
        self.teleoperator = 7.0

    def drive(self, moved: float = 0.0) -> None:
        """Let the person press and command; send what comes of it."""
        self.teleoperator += moved
        self.takeover.signal(True, 0.0, self.now_s)
        self.takeover.command(np.array([self.teleoperator]), 0.0, self.now_s)
        self.guard.observed(self.now_s)
        self.receive(self.person.limit(self.at.positions.copy(), self.now_s).command)


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_person_and_policy_in_any_order_stay_within_the_limits(
    steps: list[tuple[float, float, int]],
) -> None:
    arm = Driven()
    for wanted, periods, event in steps:
        if event % 3 == 0:
            arm.drive(wanted)
        else:
            arm.takeover.signal(False, 0.0, arm.now_s)
            arm.step(wanted)
        arm.pass_by_within_limits(periods * PERIOD_S)
    assert arm.controller.peak_speed[0] <= SPEED * 1.2


@settings(max_examples=100, deadline=None)
@given(st.floats(0.0, 7.0), st.floats(-2.0, 2.0), st.integers(2, 8), st.floats(-0.05, 0.05))
def test_a_takeover_ends_the_motion_and_the_person_starts_at_rest(
    late: float, speed: float, steps: int, moved: float
) -> None:
    arm = Driven()
    for step in range(steps):
        arm.step(speed * PERIOD_S * (step + 1))
        arm.now_s += PERIOD_S
    arm.now_s += (late - 1.0) * PERIOD_S
    taken_at = arm.at.positions[0]
    for _ in range(12):
        arm.drive()
        arm.pass_by(PERIOD_S)
    rest = arm.at.positions[0]
    assert abs(rest - taken_at) <= BRAKES_M
    for _ in range(3):
        arm.drive(moved)
        arm.pass_by(PERIOD_S)
    arm.pass_by(3.0 * PERIOD_S)
    assert abs(arm.at.positions[0] - np.clip(rest + 3 * moved, LOW, HIGH)) <= 1e-6


class TwoEntries:
    """A person beside an arm of two entries, which has a clock of its own."""

    def __init__(self, measured: MeasuredPositions, fields: list[str], max_step: float = np.inf) -> None:
        self.now_s, self.permission = 100.0, Permission(False, 0.5)
        limits = limits_of(2, position=(-1.0, 1.0), max_step=max_step)
        envelope, config = Envelope(limits, fields, PERIOD_S), GuardConfig(PERIOD_S, HOLD_AFTER_S)
        self.guard = Guard(envelope, config, self.permission, self.now_s)
        self.guard.start(self.now_s)
        self.commands = Commands(self.guard, Units(), measured)  # type: ignore[arg-type]
        takeover = self.permission.takeover
        self.person = PersonCommands(takeover, self.commands, self.guard, fields, measured)
        for publishers in takeover.publishers.values():
            publishers.note_publishers(frozenset((b"person",)), None, 99.0)

    def limit(self, wanted: list[float], read: list[float]) -> Outgoing:
        self.now_s += PERIOD_S
        self.guard.observed(self.now_s)
        self.permission.takeover.signal(True, 0.0, self.now_s)
        self.permission.takeover.command(np.array(wanted), 0.0, self.now_s)
        return self.person.limit(np.array(read), self.now_s)


def test_a_person_moves_no_joint_from_a_place_that_is_unknown() -> None:
    arm = TwoEntries(MeasuredPositions(("joint_0", "joint_1"), (0, None)), ["positions"] * 2)
    outgoing = arm.limit([0.4, 0.7], [0.1])
    assert outgoing.command is None
    assert outgoing.brakes


@pytest.mark.parametrize("policy_acted", [True, False])
@pytest.mark.parametrize("at", [0.5, 7.0])  # where the teleoperator's gripper stands, also outside the limits
@pytest.mark.parametrize("reads", [True, False])
def test_a_gripper_goes_nowhere_until_the_person_moves_it(reads: bool, at: float, policy_acted: bool) -> None:
    arm = TwoEntries(
        MeasuredPositions(("joint_0", "hand"), (0, 1 if reads else None)), ["positions", "goals"]
    )
    if policy_acted:
        arm.guard.observed(arm.now_s)
        arm.commands.limit(np.array([0.1, 0.8]), np.array([0.1, 0.3]), arm.now_s)
    for turn in range(30):
        outgoing = arm.limit([7.0, at if turn % 7 else float("nan")], [0.1, 0.3 + 0.01 * turn])
        if outgoing.action is not None:
            assert outgoing.left is not None
            assert outgoing.left.tolist() == [False, True]
    assert outgoing.action is not None
    outgoing = arm.limit([7.0, at - 0.1], [0.1, 0.65])
    assert outgoing.command is not None
    goes_to = 0.65 - 0.1 if reads else min(at - 0.1, 1.0)
    assert (outgoing.left, round(outgoing.command[1], 6)) == (None, goes_to)
    arm.now_s += 1.0  # longer than a joint counts as named
    unnamed = arm.limit([7.0, float("nan")], [0.1, 0.6])
    assert unnamed.command is None or round(unnamed.command[1], 6) in (goes_to, 0.6)


def test_a_person_drives_beside_a_gripper_of_which_nothing_is_known() -> None:
    arm = TwoEntries(MeasuredPositions(("joint_0", "hand"), (0, None)), ["positions", "goals"])
    for moved in (0.0, 0.01):
        outgoing = arm.limit([7.0 + moved, float("nan")], [0.1])
        assert outgoing.command is not None
        assert round(outgoing.command[0], 6) == 0.1 + moved
        assert outgoing.left is not None
        assert outgoing.left.tolist() == [False, True]


ARM = MeasuredPositions(("joint_0", "joint_1"), (0, 1))


def test_an_arm_that_was_pushed_in_a_gap_stays_in_the_hands_of_a_person() -> None:
    arm = TwoEntries(ARM, ["positions"] * 2)
    for _ in range(20):
        outgoing = arm.limit([7.0, 3.0], [0.1, 0.2])
    assert outgoing.command is not None
    arm.now_s += 0.9 * HOLD_AFTER_S
    for _ in range(3):
        outgoing = arm.limit([7.0, 3.0], [0.15, 0.2])
        if outgoing.command is not None:
            np.testing.assert_allclose(outgoing.command, [0.15, 0.2], atol=1e-9)
    assert outgoing.command is not None


@pytest.mark.parametrize("late_s", [0.1, 0.3, 0.4])
@pytest.mark.parametrize(("sag", "load", "push"), [(0.02, 0.01, 0.0), (0.02, 0.0, 0.03), (0.02, 0.0, -0.03)])
def test_an_arm_that_hangs_below_its_commands_does_not_sink_in_gaps(
    late_s: float, sag: float, load: float, push: float
) -> None:
    arm = TwoEntries(ARM, ["positions"] * 2, max_step=0.1)
    command, at = np.array([0.1, 0.2]), np.array([0.1, 0.2])
    for step in range(200):
        arm.now_s += late_s - PERIOD_S if step > 10 else 0.0
        hangs = sag + (load if step > 40 else 0.0)
        at = command - hangs if step > 2 else at
        outgoing = arm.limit([7.0, 3.0], list(at + (push if step == 50 else 0.0)))
        assert outgoing.command is not None
        command = outgoing.command
    np.testing.assert_allclose(command, [0.1, 0.2], atol=1e-9)

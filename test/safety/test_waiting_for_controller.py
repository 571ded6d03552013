"""The first motion waits until the controllers get the commands, which they would catch up with at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adahi_ros.safety.commands import OUTDATED_S, WAITS, Commands, Outgoing
from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.guard import Guard, GuardConfig
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.permission import Permission
from test.robot.teleoperated import Arm

AT, WANTED = np.array([0.3]), np.array([0.4])


class Waiting:
    """Commands of a joint, and of others beside it, to a controller that may miss them."""

    def __init__(
        self, period_s: float = 0.05, box: float = 9.0, beside: tuple[str, ...] = (), **limits: Any
    ) -> None:
        self.wanted = np.append(WANTED, np.zeros(len(beside)))
        self.now_s, self.period_s, self.reached = 10.0, period_s, False
        permission = Permission(False, 0.5)
        known = Limits.from_fields(["joint", *beside], {"joint": limits, **{each: {} for each in beside}})
        envelope = Envelope(known, ["positions", *beside], period_s)
        judges = {"workspace": lambda before, wanted: wanted[0] <= box or wanted[0] < before[0]}
        self.guard = Guard(envelope, GuardConfig(period_s, 5.0), permission, self.now_s, judges)
        same: Any = type("Same", (), {"to_wire": lambda _, each: each, "from_wire": lambda _, each: each})()
        at: Any = type("At", (), {"positions_in": lambda _, read: read})()
        self.commands = Commands(self.guard, same, at, lambda: self.reached)
        self.commands.start(self.now_s)

    def step(self, at: np.ndarray = AT, after_s: float = 0.0) -> Outgoing:
        self.now_s += self.period_s + after_s
        self.guard.observed(self.now_s)
        return self.commands.limit(self.wanted, at, self.now_s)

    def commanded(self, at: np.ndarray = AT, after_s: float = 0.0) -> np.ndarray:
        command = self.step(at, after_s).command
        assert command is not None
        return command


@pytest.mark.parametrize("period_s", [0.02, 0.2, 0.5])
def test_the_first_motion_waits_at_any_rate(period_s: float) -> None:
    arm = Waiting(period_s)
    for _ in range(8):
        np.testing.assert_array_equal(arm.commanded(), AT)
        assert arm.guard.reason(arm.now_s) == WAITS
    arm.reached = True
    arm.step()
    np.testing.assert_array_equal(arm.commanded(), WANTED)
    assert arm.guard.reason(arm.now_s) == ""


@pytest.mark.parametrize("limits", [{"acceleration": 2.0}, {}])
def test_an_arm_outside_of_its_limits_is_not_led_inwards_while_it_waits(limits: dict[str, float]) -> None:
    arm = Waiting(0.05, 9.0, (), position_high=0.25, velocity=0.5, **limits)
    for _ in range(40):
        np.testing.assert_array_equal(arm.commanded(), AT)
    arm.guard.permission.set_enabled(False, arm.now_s)
    arm.step()
    arm.guard.permission.set_enabled(True, arm.now_s)
    assert arm.commands.repeat(arm.now_s + 0.5).command == AT
    arm.guard.stop()
    for _ in range(4):
        arm.now_s += arm.period_s
        assert arm.commands.brake_if_held(arm.now_s).command in (None, AT)
    arm.commands.start(arm.now_s + 2.0)
    arm.reached = True
    arm.now_s += 2.0
    led = [float(arm.commanded()[0]) for _ in range(40)]
    assert led[-1] == 0.25
    assert max(abs(np.diff([AT[0], *led]))) <= 0.5 * arm.period_s + 1e-9


@pytest.mark.parametrize("beside", [(), ("goals",), ("velocities",)])
def test_an_arm_outside_of_its_workspace_waits_and_returns(beside: tuple[str, ...]) -> None:
    arm = Waiting(box=0.25, velocity=0.5, beside=beside)
    at = np.append(AT, np.zeros(len(beside)))
    for _ in range(4):
        np.testing.assert_array_equal(arm.commanded(at), at)
        assert arm.guard.interventions == ()
    arm.reached, arm.wanted[0] = True, 0.1
    assert arm.commanded(at)[0] < AT


@pytest.mark.parametrize("period_s", [0.02, 0.05, 0.2])
def test_an_arm_that_is_moved_while_it_waits_is_held(period_s: float) -> None:
    arm, at = Waiting(period_s, max_step=0.05, following=1.0, velocity=0.5), AT
    arm.commanded()
    while not arm.guard.holding:
        at = at + 0.2 * period_s
        assert arm.step(at).command in (None, AT)
    assert "was commanded to 0.3" in arm.guard.reason(arm.now_s)
    for _ in range(round(0.6 / period_s)):
        assert arm.step(at).command is None
    arm.guard.permission.set_enabled(True, arm.now_s)
    for _ in range(10):
        np.testing.assert_array_equal(arm.commanded(at), at)


def test_a_base_beside_an_arm_that_is_moved_brakes() -> None:
    arm = Waiting(beside=("velocities",), max_step=0.1, velocity=0.5, acceleration=1.0, following=np.inf)
    arm.reached, arm.wanted = True, np.array([0.3, 0.3])
    for _ in range(20):
        assert arm.step(np.array([0.3, 0.0])).command is not None
    arm.reached = False
    sent = [arm.step(np.array([0.5, 0.0]), 0.1).command for _ in range(6)]
    assert [each[1] for each in sent if each is not None][-1] == 0.0
    assert arm.guard.resting[0]


@pytest.mark.parametrize("period_s", [0.05, 0.1, 0.2, 0.5])
@pytest.mark.parametrize("steps", range(4))
def test_a_press_soon_after_a_hold_leads_no_arm_back(period_s: float, steps: int) -> None:
    arm = Waiting(period_s, max_step=0.1, velocity=0.5, acceleration=1.0)
    moved = np.linspace(0.3, 0.7, max(2, int(0.4 / period_s)))
    for at in (*[0.3] * 12, *moved, *[0.7] * steps):
        arm.step(np.array([at]))
    assert arm.guard.holding
    arm.guard.permission.set_enabled(True, arm.now_s)
    for _ in range(20):
        assert arm.step(np.array([0.7])).command in (None, 0.3, 0.7)


def test_a_joint_that_is_not_measured_waits_within_its_limits() -> None:
    arm = Waiting(position_high=0.25, velocity=0.5, acceleration=2.0)
    for pause_s in (0.0, 0.0, 2.0, 0.0):
        command = arm.commanded(np.array([np.nan]), pause_s)
        np.testing.assert_allclose(command, [0.25], atol=1e-9)


@pytest.mark.parametrize(("pause_s", "place"), [(0.3, 0.4), (0.6, 0.35)])
def test_an_arm_that_hangs_below_its_commands_waits_where_motion_starts(pause_s: float, place: float) -> None:
    arm, hanging = Waiting(velocity=0.5, acceleration=2.0), np.array([0.35])
    arm.reached = True
    for _ in range(20):
        arm.step(hanging)
    arm.reached = False
    for after_s in (pause_s, 0.0, 0.0):
        np.testing.assert_allclose(arm.commanded(hanging, after_s), [place], atol=0.005)


def test_a_joint_that_turns_without_end_waits_in_the_turn_of_its_commands() -> None:
    arm = Waiting(continuous=True, velocity=0.5)
    at = np.pi - 0.001
    for step in range(20):
        command = arm.commanded(np.array([at if step % 4 < 2 else -at]), after_s=0.2 * (step % 2))
        np.testing.assert_allclose(command, [at], atol=0.003)


@pytest.mark.parametrize("long", [True, False])
def test_a_plan_that_went_on_for_long_meanwhile_is_outdated(long: bool) -> None:
    arm = Waiting()
    for _ in range(round(OUTDATED_S / arm.period_s) + (3 if long else -3)):
        arm.step()
    assert not arm.guard.resumes(arm.now_s)
    arm.reached = True
    first = arm.commanded()
    assert arm.guard.resumes(arm.now_s) is long
    np.testing.assert_array_equal(first, AT if long else WANTED)


def test_what_a_person_moved_while_the_arm_waited_is_not_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, leader, reached = 10.0, np.zeros(2), False
    arm = Arm(lambda: now_s, 2, True, False)
    began, now_s = arm.read, 12.0
    monkeypatch.setattr(arm.commands, "_reaches", lambda: reached)
    monkeypatch.setattr(arm.takeover, "wanted", lambda _: leader.copy())
    monkeypatch.setattr(arm.permission, "holding", lambda *_: None)
    for step in range(50):
        reached = step >= 40
        leader += 0.01 if step < 40 or step == 45 else 0.0
        arm.observed()
        arm.publish(arm._person.limit(arm.read, now_s))
        now_s += 0.05
    np.testing.assert_allclose(arm.at, began + 0.01, atol=1e-9)

"""Commands with the next points of a plan: what the controller is asked for stays within every limit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adahi_lab.tasks.trajectory_controller import SetPoint, TrajectoryController
from adahi_ros.safety.ahead import AheadGuard
from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.guard import GuardConfig
from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.permission import Permission, Press
from test.safety.conftest import HOLD_AFTER_S, PERIOD_S

SPEED, ACCELERATION, LOW, HIGH = 2.0, 40.0, -1.0, 1.0
ARM = {
    "velocity": SPEED,
    "acceleration": ACCELERATION,
    "position_low": LOW,
    "position_high": HIGH,
    "max_step": 0.5,
}
BRAKES_M = SPEED**2 / (2.0 * ACCELERATION) + 2.0 * SPEED * PERIOD_S  # and until the message is there


class Arm:
    """A guard whose commands a trajectory controller executes, and the time."""

    def __init__(self, points: int, **changes: float) -> None:
        self.now_s = 100.0
        self.planned = points - 1
        self.permission = Permission(True, 60.0)
        limits = Limits.from_fields(["a"], {"a": {**ARM, **changes}})
        envelope = Envelope(limits, "positions", PERIOD_S)
        self.guard = AheadGuard(envelope, GuardConfig(PERIOD_S, HOLD_AFTER_S), self.permission, self.now_s)
        self.controller = TrajectoryController(np.zeros(1))
        self.guard.start(self.now_s)
        self.presses = 0
        self.enable(True)

    def enable(self, value: bool) -> None:
        self.presses += 1
        self.permission.publishers.note_publishers(frozenset((b"deadman",)), None, self.now_s)
        self.permission.receive(Press(value, self.now_s, 0.0, self.presses), self.now_s)

    @property
    def at(self) -> SetPoint:
        return self.controller.sample(self.now_s)

    def receive(self, command: np.ndarray | None, ahead: list[np.ndarray] | None = None) -> None:
        if command is not None:
            self.controller.receive(command, None, 0.0, PERIOD_S, self.now_s, ahead or [])

    def step(self, plan: np.ndarray) -> list[np.ndarray]:
        """Command the first action of a plan (N,), with points after it; return these."""
        self.guard.observed(self.now_s)
        measured = self.at.positions
        command = self.guard.act(plan[:1], measured, self.now_s)
        points = [] if command is None else self.guard.extend(plan[1 : 1 + self.planned, None], measured)
        self.receive(command, points)
        if command is None:
            self.look()
        return points

    def look(self) -> None:
        self.receive(self.guard.brake_if_held(self.now_s))

    def pass_by(self, time_s: float) -> None:
        """Let time pass; the timer looks every period."""
        end_s = self.now_s + time_s
        while self.now_s + PERIOD_S < end_s:
            self.now_s += PERIOD_S
            self.look()
        self.now_s = end_s

    def pass_by_within_limits(self, time_s: float) -> None:
        """Let time pass, and check that the arm stays between its limits."""
        before_s = self.now_s
        self.pass_by(time_s)
        between = np.linspace(before_s, self.now_s, 5)
        places = np.array([self.controller.sample(each).positions[0] for each in between])
        assert ((places >= LOW - 1e-9) & (places <= HIGH + 1e-9)).all()


def ramp(start: float, steps: int = 8, speed: float = 1.0) -> np.ndarray:
    """Return positions of a plan with a constant speed, from a period after its start on."""
    return start + speed * PERIOD_S * np.arange(1, steps + 1)


PLANS = st.lists(st.floats(-1.5, 1.5), min_size=8, max_size=8)
STEPS = st.lists(st.tuples(PLANS, st.floats(0.05, 6.0), st.integers(0, 20)), min_size=2, max_size=25)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.integers(1, 8))
def test_any_lateness_change_or_stop_stays_within_the_limits(
    steps: list[tuple[list[float], float, int]], points: int
) -> None:
    arm = Arm(points)
    for plan, periods, event in steps:
        if event == 0:
            arm.enable(False)
            arm.look()
        elif event <= 2:
            arm.enable(True)
        elif event == 3:
            arm.receive(arm.guard.withhold(arm.now_s))
        elif event == 4:
            arm.receive(arm.guard.repeat(arm.now_s))
        arm.step(np.array(plan))
        arm.pass_by_within_limits(periods * PERIOD_S)
    assert arm.controller.peak_speed[0] <= SPEED * (1.0 + 1e-6)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(PLANS, st.floats(1.0, 4.0), st.booleans()), min_size=2, max_size=20))
def test_steps_on_time_or_late_stay_within_the_acceleration(
    steps: list[tuple[list[float], float, bool]],
) -> None:
    arm = Arm(6)
    for plan, periods, stops in steps:
        arm.enable(not stops)
        arm.step(np.array(plan))
        arm.pass_by(periods * PERIOD_S)
    assert arm.controller.peak_acceleration[0] <= ACCELERATION * (1.0 + 1e-6)


@given(st.floats(0.0, 4.0), st.floats(-2.0, 2.0), st.integers(2, 8))
@settings(max_examples=100, deadline=None)
def test_after_a_stop_the_points_that_were_sent_move_nothing(late: float, speed: float, points: int) -> None:
    """Whenever it comes, the arm is at rest within its braking path and stays there."""
    arm = Arm(points)
    arm.step(ramp(0.0, speed=speed))
    arm.now_s += late * PERIOD_S
    arm.enable(False)
    stopped_at = arm.at.positions[0]
    arm.look()
    arm.pass_by(1.0)
    rest = arm.at
    assert rest.velocities[0] == 0.0
    assert abs(rest.positions[0] - stopped_at) <= BRAKES_M
    arm.pass_by(10.0)
    assert arm.at == rest
    assert arm.controller.peak_speed[0] <= SPEED * (1.0 + 1e-6)


def test_a_late_step_is_no_stop() -> None:
    """The controller executes the next points; with one point it stands until the step comes."""
    speeds = {}
    for points in (1, 4):
        arm = Arm(points)
        plan = ramp(0.0, 12)
        slowest = 9.0
        for step in range(6):
            arm.step(plan[step:])
            arm.now_s += PERIOD_S * 1.4  # each is late
            slowest = min(slowest, arm.at.velocities[0])
        speeds[points] = slowest
    assert speeds[1] == 0.0
    assert speeds[4] == pytest.approx(1.0)


def test_on_time_the_points_change_no_command() -> None:
    sent: dict[int, list[float]] = {1: [], 5: []}
    for points, commands in sent.items():
        arm = Arm(points)
        plan = ramp(0.0, 12, 1.5)
        for step in range(8):
            arm.guard.observed(arm.now_s)
            command = arm.guard.act(plan[step : step + 1], arm.at.positions, arm.now_s)
            assert command is not None
            commands.append(float(command[0]))
            arm.receive(command, arm.guard.extend(plan[step + 1 : step + points, None], None))
            arm.now_s += PERIOD_S * 0.999
    assert sent[1] == sent[5]


def test_points_end_before_the_first_that_a_limit_would_change() -> None:
    arm = Arm(6)
    plan = ramp(0.0)
    plan[3] += 1.0  # too fast
    assert len(arm.step(plan)) == 2
    arm.now_s += PERIOD_S
    plan[2] = np.nan
    assert len(arm.step(plan[1:])) == 0
    near = Arm(6, max_step=0.2)
    assert 0 < len(near.step(ramp(0.0))) < 5  # no further than max_step from where the arm is now


def test_an_action_that_a_limit_changes_carries_no_points() -> None:
    arm = Arm(6)
    assert arm.step(ramp(0.0, speed=3.0)) == []
    assert Intervention.VELOCITY in arm.guard.interventions
    arm = Arm(6)
    far, near = 2.0 * SPEED * PERIOD_S, SPEED * PERIOD_S
    assert arm.step(np.array([far, *ramp(near)])) == []  # though the later ones are within every limit
    assert arm.guard.interventions == (Intervention.VELOCITY,)


def test_a_repeated_observation_does_not_bring_the_old_command_back() -> None:
    arm = Arm(4)
    arm.step(ramp(0.0))
    arm.now_s += 2.5 * PERIOD_S
    assert arm.guard.repeat(arm.now_s) is None
    assert arm.at.velocities[0] == pytest.approx(1.0)


def test_without_observations_the_arm_is_held_where_it_is_on_its_way() -> None:
    arm = Arm(8)
    arm.step(ramp(0.0))
    arm.pass_by(HOLD_AFTER_S + 2.0 * PERIOD_S)
    assert arm.guard.holding
    arm.pass_by(1.0)
    assert arm.at.velocities[0] == 0.0


def test_the_end_of_the_node_stops_it_where_it_is() -> None:
    arm = Arm(8)
    arm.step(ramp(0.0))
    arm.now_s += 2.5 * PERIOD_S
    here = arm.at.positions[0]
    arm.receive(arm.guard.halt(arm.now_s))
    arm.now_s += 1.0
    assert arm.at.positions[0] == pytest.approx(here)

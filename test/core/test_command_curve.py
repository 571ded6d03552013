"""The curve of commands, as joint_trajectory_controller of ros2_control samples it: within the limits."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from adahi_ros.core.command_curve import CommandCurve, Curve
from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.guard import Guard, GuardConfig
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.permission import Permission

PERIOD_S = 0.05
SPEED, ACCELERATION = 2.0, 7.5
LIMITS = {"a": {"velocity": SPEED, "acceleration": ACCELERATION, "position_low": -2.0, "position_high": 2.0}}
SECONDS = 20.0
ROUNDING = 1.02


class Point(NamedTuple):
    """A point of a trajectory: its time in s after the stamp, position, and velocity or NaN."""

    time_s: float
    position: float
    velocity: float = math.nan


class JointTrajectoryController:
    """One joint of the controller of ros2_controllers 4, tick by tick, with its two ways to begin.

    With `interpolate_from_desired_state` it begins a trajectory that lies ahead at the set point of the next
    tick with the time of this one; otherwise at the measured position, which lags by a tick.
    """

    def __init__(self, tick_s: float, from_desired_state: bool) -> None:
        self.tick_s, self.from_desired_state = tick_s, from_desired_state
        self.rejected = 0
        self.positions = [0.0, 0.0]
        self._points: list[Point] = []
        self._starts_s = 0.0
        self._sampled = True
        self._desired = self._before = Point(-math.inf, 0.0)

    def receive(self, stamp_s: float, points: list[Point], now_s: float) -> None:
        times_ns = [round(each.time_s * 1e9) for each in points]
        late = stamp_s and stamp_s + points[-1].time_s < now_s
        if late or any(after <= before for before, after in pairwise(times_ns)):
            self.rejected += 1
            return
        self._points, self._starts_s, self._sampled = points, stamp_s, False

    def tick(self, now_s: float) -> None:
        if not self._points:
            return
        if not self._sampled:
            self._starts_s = self._starts_s or now_s
            speed = (self.positions[-1] - self.positions[-2]) / self.tick_s
            measured = Point(now_s, self.positions[-2], speed)
            self._before = self._desired if self.from_desired_state else measured
            self._sampled = True
        found = self._sample(now_s + self.tick_s)
        self._desired = found._replace(time_s=now_s)
        self.positions.append(found.position)

    def _sample(self, time_s: float) -> Point:
        points = [each._replace(time_s=each.time_s + self._starts_s) for each in self._points]
        if time_s < points[0].time_s:
            before = self._before
            if math.isnan(before.velocity):
                before = before._replace(velocity=0.0 * points[0].velocity)
            return between(before, points[0], time_s)
        for start, end in pairwise(points):
            if time_s < end.time_s:
                return between(start, end, time_s)
        return points[-1]


def between(start: Point, end: Point, time_s: float) -> Point:
    """Return the point on a cubic; on a line where a velocity is unknown."""
    lasts_s, passed_s = end.time_s - start.time_s, time_s - start.time_s
    if not math.isfinite(lasts_s):
        return end
    speed = (end.position - start.position) / lasts_s
    if math.isnan(start.velocity) or math.isnan(end.velocity):
        return Point(time_s, start.position + speed * passed_s)
    square = (3.0 * speed - 2.0 * start.velocity - end.velocity) / lasts_s
    cube = (start.velocity + end.velocity - 2.0 * speed) / lasts_s**2
    return Point(
        time_s,
        start.position + passed_s * (start.velocity + passed_s * (square + passed_s * cube)),
        start.velocity + passed_s * (2.0 * square + passed_s * 3.0 * cube),
    )


def points_of(curve: Curve) -> list[Point]:
    rows = zip(curve.times_s - curve.times_s[0], curve.places[:, 0], curve.speeds[:, 0], strict=True)
    return [Point(*map(float, row)) for row in rows]


class Followed(NamedTuple):
    """What a controller made of commands.

    Attributes:
        positions: of each tick.
        speeds: per s, of each tick.
        accelerations: as shares of the limit, of each tick in motion.
        rejected: messages.
        commands: (N,).
    """

    positions: np.ndarray
    speeds: np.ndarray
    accelerations: np.ndarray
    rejected: int
    commands: np.ndarray


def wanted_positions(smooth: bool, seed: int) -> np.ndarray:
    generator, steps = np.random.default_rng(seed), int(SECONDS / PERIOD_S)
    times_s = PERIOD_S * np.arange(steps)
    if smooth:
        waves: np.ndarray = 0.6 * np.sin(1.8 * times_s) + 0.1 * np.sin(3.7 * times_s + 1.0)
        return waves
    return np.repeat(generator.uniform(-0.8, 0.8, steps), generator.integers(6, 30, steps))[:steps]


def followed(
    wanted: np.ndarray,
    from_desired_state: bool = True,
    jitter_s: float = 0.0,
    lost: float = 0.0,
    curved: bool = True,
    rate_hz: float = 250.0,
    clock_s: float = 0.0,
    seed: int = 0,
    times_s: np.ndarray | None = None,
    controller: JointTrajectoryController | None = None,
) -> Followed:
    """Send commands to wanted positions (N,), each late by up to a jitter, and let the controller follow.

    There is no command where the wanted position is NaN.
    """
    generator = np.random.default_rng(seed)
    envelope = Envelope(Limits.from_fields(["a"], LIMITS), "positions", PERIOD_S)
    config = GuardConfig(PERIOD_S, 9.0, interpolated=curved)
    guard, curve = Guard(envelope, config, Permission(False, 9.0), 0.0), CommandCurve(PERIOD_S)
    controller = controller or JointTrajectoryController(1.0 / rate_hz, from_desired_state)
    guard.start(0.0)
    messages, commands = [], [0.0]
    for step, position in enumerate(wanted.tolist()):
        now_s = 1.0 + step * PERIOD_S + generator.uniform(0.0, jitter_s)
        now_s = now_s if times_s is None else float(times_s[step])
        if math.isnan(position):
            continue  # it is held
        guard.observed(now_s)
        measured = np.zeros(1) if step == 0 else None
        command = guard.act(np.array([position]), measured, now_s)
        if command is None:
            assert times_s is not None, "only at random times one may come too soon after the last"
            continue
        stamp_s, points = 0.0, [Point(PERIOD_S, float(command[0]))]
        if curved:
            made = curve.extend(now_s, guard.before, command, guard.counted_s)
            stamp_s, points = made.times_s[0], points_of(made)
        commands.append(float(command[0]))
        if generator.random() >= lost:
            messages.append((now_s + generator.uniform(0.0003, 0.003), stamp_s, points))
    for tick in range(int((now_s + 1.0) * rate_hz)):
        now_s = 0.9993 + tick / rate_hz
        while messages and messages[0][0] <= now_s:
            _, stamp_s, points = messages.pop(0)
            controller.receive(stamp_s, points, now_s + clock_s)
        controller.tick(now_s + clock_s)
    positions = np.array(controller.positions)
    speeds = np.diff(positions) * rate_hz
    moves = np.abs(speeds[1:]) + np.abs(speeds[:-1]) > 1e-6
    accelerations = np.abs(np.diff(speeds) * rate_hz / ACCELERATION)[moves]
    return Followed(positions, speeds, accelerations, controller.rejected, np.array(commands))


@pytest.mark.parametrize("from_desired_state", [True, False])
@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("jitter_s", [0.0, 0.005, 0.03])
def test_a_controller_stays_within_speed_and_acceleration(
    from_desired_state: bool, smooth: bool, jitter_s: float
) -> None:
    made = followed(wanted_positions(smooth, 3), from_desired_state, jitter_s)
    assert np.abs(made.speeds).max() <= ROUNDING * SPEED
    assert (made.accelerations > ROUNDING).mean() <= 0.01
    assert made.accelerations.max() <= 4.0
    assert not made.rejected


@pytest.mark.parametrize("from_desired_state", [True, False])
def test_a_point_by_itself_makes_jerks(from_desired_state: bool) -> None:
    """The reason for the curve, and a check of the controller's model."""
    made = followed(wanted_positions(True, 3), from_desired_state, curved=False)
    assert (made.accelerations > ROUNDING).mean() > 0.05
    assert made.accelerations.max() > 10.0


@pytest.mark.parametrize("rate_hz", [100.0, 500.0])
@pytest.mark.parametrize("clock_s", [-0.004, 0.004])
def test_any_rate_of_the_controller_and_clocks_a_little_apart(rate_hz: float, clock_s: float) -> None:
    made = followed(wanted_positions(False, 5), True, 0.005, rate_hz=rate_hz, clock_s=clock_s)
    assert np.abs(made.speeds).max() <= ROUNDING * SPEED
    assert (made.accelerations > ROUNDING).mean() <= 0.015


@pytest.mark.parametrize("from_desired_state", [True, False])
def test_a_lost_message_costs_less_than_half_a_step(from_desired_state: bool) -> None:
    made = followed(wanted_positions(False, 7), from_desired_state, 0.005, lost=0.03)
    assert np.abs(made.speeds).max() / 250.0 <= 0.5 * SPEED * PERIOD_S


def test_it_ends_at_the_last_command_and_stays_between_the_commands() -> None:
    wanted = wanted_positions(False, 9)
    made = followed(wanted, jitter_s=0.03)
    assert made.positions[-1] == pytest.approx(np.clip(wanted[-1], -2.0, 2.0), abs=1e-3)
    assert made.positions.max() <= made.commands.max() + 1e-6
    assert made.positions.min() >= made.commands.min() - 1e-6


def test_from_another_place_it_starts_at_rest() -> None:
    curve = CommandCurve(PERIOD_S)
    curve.extend(1.0, np.zeros(1), np.ones(1), PERIOD_S)
    begun = curve.extend(1.05, np.full(1, 5.0), np.full(1, 5.1), PERIOD_S)
    assert begun.places[0] == 5.0
    assert begun.speeds[0] == 0.0
    assert begun.places[-1] == 5.1
    assert begun.speeds[-1] == 0.0
    assert (np.diff(begun.times_s) > 0.0).all()


def test_a_joint_that_starts_anew_leaves_the_others_in_motion() -> None:
    alone, both, place = CommandCurve(PERIOD_S), CommandCurve(PERIOD_S), 0.0
    for step in range(6):
        now_s, before, place = 1.0 + step * PERIOD_S, place, place + 0.02
        other = 0.0 if step < 5 else 3.0  # it was moved by hand
        only = alone.extend(now_s, np.array([before]), np.array([place]), PERIOD_S)
        made = both.extend(now_s, np.array([before, other]), np.array([place, other]), PERIOD_S)
    np.testing.assert_allclose(made.places[:, 0], only.places[:, 0])
    np.testing.assert_allclose(made.speeds[:, 0], only.speeds[:, 0])
    assert made.speeds[0, 0] == pytest.approx(0.4)
    assert (made.places[:, 1] == 3.0).all()
    assert (made.speeds[:, 1] == 0.0).all()


@pytest.mark.parametrize("mean_s", [0.5 * PERIOD_S, PERIOD_S])
def test_commands_at_random_times_are_hardly_faster_than_allowed(mean_s: float) -> None:
    waits_s = np.random.default_rng(0).exponential(mean_s, 2000)
    waits_s[500:540] = 1e-4  # a burst
    made = followed(0.6 * np.sin(1.2 * np.cumsum(waits_s)), times_s=1.0 + np.cumsum(waits_s))
    assert np.abs(made.speeds).max() <= 1.2 * SPEED
    assert not made.rejected


def test_what_is_sent_again_is_the_rest_of_the_same_curve() -> None:
    curve = CommandCurve(PERIOD_S)
    assert curve.again(0.0) is None
    made = curve.extend(1.0, np.zeros(1), np.ones(1), PERIOD_S)
    for now_s in (1.0, 1.02, 1.09, 1.2):
        left = curve.again(now_s)
        assert left is not None
        assert left.times_s[0] <= now_s
        for time_s in np.arange(now_s, 1.3, 0.003):
            for one, other in zip(left.at(time_s), made.at(time_s), strict=True):
                np.testing.assert_allclose(one, other, atol=1e-9)


def test_a_clock_that_goes_back_starts_it_again() -> None:
    curve = CommandCurve(PERIOD_S)
    curve.extend(100.0, np.zeros(1), np.ones(1), PERIOD_S)
    back = curve.extend(1.0, np.ones(1), np.full(1, 1.1), PERIOD_S)
    assert back.times_s[0] == pytest.approx(1.0, abs=0.02)
    assert back.times_s[-1] < 1.3
    assert back.speeds[0] == 0.0


@pytest.mark.parametrize("rate_hz", [10.0, 20.0, 50.0, 100.0])
def test_the_points_of_every_message_have_times_of_their_own(rate_hz: float) -> None:
    """A controller refuses a message with two points of the same nanosecond."""
    rng, period_s = np.random.default_rng(0), 1.0 / rate_hz
    for _ in range(20):
        curve, start_s, at = CommandCurve(period_s), rng.uniform(0.0, 5.0), np.zeros(2)
        for step in range(100):
            now_s = start_s + (step + rng.uniform(0.0, 0.06) * rng.integers(2)) * period_s
            command = at + np.array([0.002, 0.001]) * (step % 7 - 3)
            sent, at = curve.extend(now_s, at, command, period_s), command
            again = curve.again(now_s + rng.uniform(0.0, 1.0) * period_s)
            assert again is not None
            for each in (sent, again):
                assert (np.diff(np.round((each.times_s - each.times_s[0]) * 1e9)) > 0.0).all()

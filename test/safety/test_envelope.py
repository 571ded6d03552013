from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from adahi_ros.safety.entry_limits import LARGEST
from adahi_ros.safety.envelope import BRAKES, FADES, RESTS, SHORTEST_S, Envelope
from adahi_ros.safety.governors import GOVERNORS
from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.limits import Limits
from test.safety.conftest import PERIOD_S, limits_of, sent

ULPS = 8  # what a check may be off by, of the numbers that it is computed from


# What a robot may be, and what garbage may come

bounds = st.tuples(st.floats(-3.0, 3.0), st.floats(0.0, 3.0)).map(lambda b: (b[0], b[0] + b[1]))
positions = st.one_of(
    bounds, st.just((-math.inf, math.inf)), st.floats(0.01, 3.0).map(lambda high: (0.0, high))
)
rates = st.one_of(st.floats(0.05, 20.0), st.just(math.inf), st.sampled_from([1e-9, 1e9]))
robots = st.fixed_dictionaries(
    {
        "position": positions,
        "velocity": rates,
        "acceleration": rates,
        "max_step": st.one_of(st.floats(0.01, 2.0), st.just(math.inf)),
        "effort": st.one_of(st.floats(0.0, 100.0), st.just(math.inf)),
    }
)
SPECIAL = (math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, -0.0, 1e9, -1e9, 2e9)
garbage = st.one_of(
    st.sampled_from(SPECIAL), st.sampled_from([-5.0, 5.0]), st.floats(-4.0, 4.0), st.floats(-0.1, 0.1)
)
intervals = st.one_of(
    st.just(PERIOD_S),
    st.floats(0.5 * PERIOD_S, 1.5 * PERIOD_S),
    st.sampled_from([0.0, -1.0, 1e-9, 1e-6, 5e-324, 1e300, math.inf, math.nan, 3.0 * PERIOD_S, 10.0]),
    st.floats(0.0, 0.3),
)
moments = st.lists(
    st.tuples(
        st.lists(garbage, min_size=2, max_size=2),
        st.one_of(st.none(), st.lists(garbage, min_size=2, max_size=2)),
        intervals,
        st.booleans(),  # hold
    ),
    min_size=1,
    max_size=25,
)


def two_joints(one: dict[str, Any], other: dict[str, Any]) -> Limits:
    joints = {}
    for name, robot in (("one", one), ("other", other)):
        low, high = robot["position"]
        rest = {field: value for field, value in robot.items() if field != "position"}
        joints[name] = {"position_low": low, "position_high": high, **rest}
    return Limits.from_fields(list(joints), joints)


def _times(limit: np.ndarray, factor: float) -> np.ndarray:
    return np.array([math.inf if math.isinf(each) else each * factor for each in limit])


class Judge:
    """Checks by itself what goes out of an envelope of positions, from nothing but that and the time."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.position: np.ndarray | None = None
        self.earlier = self.moved = np.zeros(2)
        self.moved_s = PERIOD_S
        self.first = True

    def interval(self, elapsed_s: float) -> float:
        if self.first:
            return PERIOD_S
        return min(elapsed_s, PERIOD_S) if elapsed_s >= SHORTEST_S else 0.0

    def check(self, action: np.ndarray, start: np.ndarray, elapsed_s: float, hold: bool) -> None:
        limits, interval_s = self.limits, self.interval(elapsed_s)
        before = start if self.position is None else self.position
        off = ULPS * np.spacing(np.maximum(np.abs(before), np.abs(action)))
        assert np.isfinite(action).all()
        assert (action >= np.minimum(limits.position_low, before)).all()
        assert (action <= np.maximum(limits.position_high, before)).all()
        moved = action - before
        assert (np.abs(moved) <= _times(limits.velocity, interval_s) + off).all()
        self.moved = self.moved * carried(elapsed_s, hold)
        ratio = interval_s / self.moved_s
        changed = np.abs(moved - self.moved * ratio)
        off = np.maximum(off, ULPS * np.spacing(np.abs(self.earlier)))  # `moved` was computed from it
        assert (changed <= _times(limits.acceleration, interval_s**2) + off * (1.0 + ratio)).all()
        self.earlier, self.position, self.first = before, action, False
        if interval_s > 0.0:
            self.moved, self.moved_s = moved, interval_s


def carried(elapsed_s: float, hold: bool) -> float:
    """Return the share of its commanded velocity that a robot has so long after a command."""
    periods = elapsed_s / PERIOD_S
    if math.isnan(periods) or periods <= FADES:
        return 1.0
    return 0.0 if hold and periods > BRAKES else max(0.0, (RESTS - periods) / (RESTS - FADES))


def known(measured: list[float] | None) -> np.ndarray:
    values = np.full(2, math.nan) if measured is None else np.array(measured)
    return np.where(np.abs(values) <= LARGEST, values, math.nan)


@settings(max_examples=700)
@given(robots, robots, moments)
def test_whatever_comes_in_positions_stay_within_every_limit_at_once(
    one: dict[str, Any], other: dict[str, Any], moments: list[Any]
) -> None:
    limits = two_joints(one, other)
    envelope, judge = Envelope(limits, "positions", PERIOD_S), Judge(limits)
    for wanted, measured, elapsed_s, hold in moments:
        admitted = envelope.hold(measured, elapsed_s) if hold else envelope.admit(wanted, measured, elapsed_s)
        sound = not hold and bool((np.abs(wanted) <= LARGEST).all())
        assert (Intervention.NOT_FINITE in admitted.interventions) == (not hold and not sound)
        if admitted.action is None:
            assert not sound
            assert judge.position is None
            assert np.isnan(known(measured)).any()
            continue
        start = np.clip(wanted, limits.position_low, limits.position_high)
        start = np.where(np.isnan(known(measured)), start, known(measured))
        judge.check(admitted.action, start, elapsed_s, hold or not sound)
        if sound and not admitted.interventions:
            assert admitted.action.tobytes() == np.array(wanted, dtype=np.float64).tobytes()
        if sound and admitted.interventions:
            assert (admitted.action != np.array(wanted)).any()
        assert len(set(admitted.interventions)) == len(admitted.interventions)


@settings(max_examples=300)
@given(robots, robots, moments)
def test_whatever_comes_in_velocities_stay_within_every_limit_at_once(
    one: dict[str, Any], other: dict[str, Any], moments: list[Any]
) -> None:
    limits = two_joints(one, other)
    envelope, before, first = Envelope(limits, "velocities", PERIOD_S), np.zeros(2), True
    for wanted, measured, elapsed_s, hold in moments:
        action = sent(
            envelope.hold(measured, elapsed_s) if hold else envelope.admit(wanted, measured, elapsed_s)
        )
        interval_s = min(elapsed_s, PERIOD_S) if elapsed_s >= SHORTEST_S else 0.0
        interval_s, first = PERIOD_S if first else interval_s, False
        assert np.isfinite(action).all()
        assert (np.abs(action) <= limits.velocity).all()
        off = ULPS * np.spacing(np.maximum(np.abs(before), np.abs(action)))
        before = before * (elapsed_s / PERIOD_S < RESTS or math.isnan(elapsed_s))
        assert (np.abs(action - before) <= _times(limits.acceleration, interval_s) + off).all()
        if hold:
            assert (np.abs(action) <= np.abs(before)).all()
            assert not action[np.isinf(limits.acceleration)].any()
        before = action


@settings(max_examples=200)
@given(robots, robots, moments, st.sampled_from(["accelerations", "effort"]))
def test_accelerations_and_efforts_stay_within_limits_for_any_input(
    one: dict[str, Any], other: dict[str, Any], moments: list[Any], field: str
) -> None:
    limits = two_joints(one, other)
    largest = limits.acceleration if field == "accelerations" else limits.effort
    envelope = Envelope(limits, field, PERIOD_S)
    for wanted, measured, elapsed_s, hold in moments:
        action = sent(
            envelope.hold(measured, elapsed_s) if hold else envelope.admit(wanted, measured, elapsed_s)
        )
        if hold or not (np.abs(wanted) <= LARGEST).all():
            assert not action.any()
        else:
            assert action.tolist() == np.clip(wanted, -largest, largest).tolist()


# What is within goes through


@settings(max_examples=300)
@given(st.integers(0, 2**32), st.floats(0.2, 20.0), st.floats(0.2, 50.0), st.booleans())
def test_positions_within_every_limit_go_through_bit_by_bit(
    seed: int, velocity: float, acceleration: float, measures: bool
) -> None:
    draw = np.random.default_rng(seed)
    limits = limits_of(2, position=(-2.0, 2.0), velocity=velocity, acceleration=acceleration)
    envelope = Envelope(limits, "positions", PERIOD_S)
    position, speed = draw.uniform(-1.5, 1.5, 2), np.zeros(2)
    envelope.admit(position, None, PERIOD_S)
    for _ in range(60):
        change = draw.choice([-1.0, 1.0, draw.uniform(-1.0, 1.0)], 2) * acceleration * PERIOD_S
        faster = np.clip(speed + change, -velocity, velocity)
        after = position + faster * PERIOD_S
        stops = after + np.sign(faster) * faster**2 / (2.0 * acceleration) * (1.0 + 1e-9)
        braked = np.sign(speed) * np.maximum(np.abs(speed) - acceleration * PERIOD_S, 0.0)
        speed = np.where(np.abs(stops) <= 2.0, faster, braked)
        position = position + speed * PERIOD_S
        admitted = envelope.admit(position, position if measures else None, PERIOD_S)
        assert sent(admitted).tobytes() == position.tobytes()
        assert admitted.interventions == ()


@settings(max_examples=200)
@given(st.integers(0, 2**32), st.floats(0.2, 20.0), st.floats(0.2, 50.0))
def test_velocities_within_every_limit_go_through_bit_by_bit(
    seed: int, velocity: float, acceleration: float
) -> None:
    draw = np.random.default_rng(seed)
    envelope = Envelope(limits_of(2, velocity=velocity, acceleration=acceleration), "velocities", PERIOD_S)
    speed = np.zeros(2)
    for _ in range(60):
        change = draw.choice([-1.0, 1.0, draw.uniform(-1.0, 1.0)], 2) * acceleration * PERIOD_S
        speed = np.clip(speed + change, -velocity, velocity)
        admitted = envelope.admit(speed, None, PERIOD_S)
        assert sent(admitted).tobytes() == speed.tobytes()
        assert admitted.interventions == ()


def test_without_limits_everything_finite_goes_through_at_any_pace() -> None:
    for field in GOVERNORS:
        envelope = Envelope(limits_of(3), field, PERIOD_S)
        for elapsed_s in (0.0, PERIOD_S, -1.0, math.nan, math.inf, 1e-9):
            wanted = np.array([-0.0, 123456.789, -5e-324])
            admitted = envelope.admit(wanted, np.array([9.0, math.nan, 1.0]), elapsed_s)
            assert sent(admitted).tobytes() == wanted.tobytes()
            assert admitted.interventions == ()
            envelope.admit(-wanted, None, 0.0)

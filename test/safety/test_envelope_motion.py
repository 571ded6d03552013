"""How an envelope brakes, starts, pauses and steps, and what it says of that."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adahi_ros.safety.envelope import WINDOW_S, Envelope, Following, stopping_path
from adahi_ros.safety.intervention import Admitted, Intervention
from adahi_ros.safety.limits import Limits
from test.safety.conftest import PERIOD_S, limits_of, listed, sent

# Braking


@settings(max_examples=200)
@given(
    st.integers(0, 2**32),
    st.floats(0.2, 5.0),
    st.floats(0.5, 50.0),
    st.sampled_from(["positions", "velocities"]),
)
def test_hold_comes_to_rest_in_no_more_steps_than_the_limits_take(
    seed: int, velocity: float, acceleration: float, field: str
) -> None:
    draw = np.random.default_rng(seed)
    limits = limits_of(2, position=(-2.0, 2.0), velocity=velocity, acceleration=acceleration)
    envelope = Envelope(limits, field, PERIOD_S)
    for _ in range(20):
        envelope.admit(draw.uniform(-4.0, 4.0, 2), None, PERIOD_S)
    for _ in range(math.ceil(velocity / (acceleration * PERIOD_S)) + 1):
        last = sent(envelope.hold(None, PERIOD_S))
    assert envelope.at_rest.all()
    again = sent(envelope.hold(None, PERIOD_S))
    assert again.tobytes() == (last if field == "positions" else np.zeros(2)).tobytes()


def test_where_acceleration_is_unlimited_hold_stops_at_once() -> None:
    envelope = Envelope(limits_of(velocity=1.0), "positions", PERIOD_S)
    envelope.admit(np.zeros(1), None, PERIOD_S)
    moved = sent(envelope.admit(np.ones(1), None, PERIOD_S))
    assert moved == pytest.approx([0.05])
    assert sent(envelope.hold(np.zeros(1), PERIOD_S)).tolist() == moved.tolist()
    assert envelope.at_rest.all()
    envelope = Envelope(limits_of(velocity=1.0), "velocities", PERIOD_S)
    assert sent(envelope.admit(np.ones(1), None, PERIOD_S)).tolist() == [1.0]
    assert not envelope.at_rest.any()
    assert sent(envelope.hold(None, 0.0)).tolist() == [0.0]
    assert envelope.at_rest.all()


def test_a_position_that_is_held_goes_on_ever_slower_until_it_rests() -> None:
    envelope = Envelope(limits_of(velocity=1.0, acceleration=4.0), "positions", PERIOD_S)
    envelope.admit(np.zeros(1), None, PERIOD_S)
    path = [float(sent(envelope.admit(np.full(1, 9.0), None, PERIOD_S))[0]) for _ in range(10)]
    path += [float(sent(envelope.hold(None, PERIOD_S))[0]) for _ in range(7)]
    assert np.diff(path)[7:] / PERIOD_S == pytest.approx(
        [1.0, 1.0, 0.8, 0.6, 0.4, 0.2, 0.0, 0.0, 0.0], abs=1e-9
    )


def test_an_action_that_is_none_is_held_as_a_whole() -> None:
    for bad in (math.nan, math.inf, -math.inf, 1e300):
        envelope = Envelope(limits_of(2, velocity=1.0, acceleration=4.0), "velocities", PERIOD_S)
        envelope.admit(np.ones(2), None, PERIOD_S)
        admitted = envelope.admit(np.array([1.0, bad]), None, 0.5 * PERIOD_S)
        assert sent(admitted) == pytest.approx([0.1, 0.1])
        assert admitted.interventions == (Intervention.NOT_FINITE,)


def test_there_is_no_position_to_hold_before_one_is_known() -> None:
    envelope = Envelope(limits_of(2, velocity=1.0), "positions", PERIOD_S)
    assert envelope.hold(None, PERIOD_S) == Admitted(None, (Intervention.STALE,))
    half = np.array([0.3, math.nan])
    assert envelope.hold(half, PERIOD_S, Intervention.DISABLED) == Admitted(None, (Intervention.DISABLED,))
    assert envelope.admit(np.full(2, math.nan), half, PERIOD_S).action is None
    assert sent(envelope.hold(np.array([0.3, 0.4]), PERIOD_S)).tolist() == [0.3, 0.4]
    assert sent(envelope.hold(None, PERIOD_S)).tolist() == [0.3, 0.4]


def test_what_could_not_be_held_is_not_remembered() -> None:
    envelope = Envelope(limits_of(2, velocity=1.0), "positions", PERIOD_S)
    assert envelope.hold(np.array([0.3, math.nan]), PERIOD_S).action is None
    assert sent(envelope.hold(np.array([0.5, 0.4]), PERIOD_S)).tolist() == [0.5, 0.4]


# The start, pauses and the clock


def test_positions_start_from_the_measured_or_else_the_first_wanted_ones() -> None:
    limits = limits_of(2, position=(-1.0, 1.0), velocity=2.0)
    admitted = Envelope(limits, "positions", PERIOD_S).admit(np.full(2, 5.0), np.array([0.5, math.nan]), 0.0)
    assert sent(admitted) == pytest.approx([0.6, 1.0])
    assert admitted.interventions == (Intervention.POSITION, Intervention.VELOCITY)


@pytest.mark.parametrize("wanted", [1.0, 5.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_position_limit_is_reached_within_the_acceleration(wanted: float, sign: float) -> None:
    envelope = Envelope(
        limits_of(position=(-1.0, 1.0), velocity=2.0, acceleration=4.0), "positions", PERIOD_S
    )
    path = [0.0]
    for _ in range(60):
        path += listed(envelope.admit(np.array([sign * wanted]), np.zeros(1), PERIOD_S).action)
    speeds = np.diff(path) / PERIOD_S
    assert np.abs(np.diff(speeds)).max() <= 4.0 * PERIOD_S * (1.0 + 1e-9)
    assert np.abs(speeds).max() > 1.0
    assert path[-1] == pytest.approx(sign)


def test_a_start_outside_is_left_inwards_only_and_no_faster_than_allowed() -> None:
    limits = limits_of(position=(-1.0, 1.0), velocity=2.0, acceleration=40.0)
    envelope, position = Envelope(limits, "positions", PERIOD_S), 1.55
    assert sent(envelope.hold(np.array([position]), PERIOD_S)).tolist() == [position]
    for _ in range(20):
        after = float(sent(envelope.admit(np.array([9.0]), None, PERIOD_S))[0])
        assert position - 2.0 * PERIOD_S - 1e-12 <= after <= position
        position = after
    assert position == 1.0


def test_a_robot_that_is_wanted_where_it_is_was_not_intervened_with() -> None:
    limits = limits_of(position=(-1.0, 1.0), velocity=2.0)
    envelope = Envelope(limits, "positions", PERIOD_S)
    envelope.hold(np.full(1, 5.0), PERIOD_S)
    assert envelope.admit(np.full(1, 5.0), None, 0.0).interventions == ()
    admitted = envelope.admit(np.full(1, 5.0), None, PERIOD_S)
    assert sent(admitted) == pytest.approx([4.9])
    assert admitted.interventions == (Intervention.POSITION, Intervention.VELOCITY)


def test_a_pause_gives_no_leap_and_ends_at_rest() -> None:
    envelope = Envelope(limits_of(velocity=1.0, acceleration=1.0), "positions", PERIOD_S)
    position = [sent(envelope.admit(np.full(1, 9.0 * (step > 0)), None, PERIOD_S))[0] for step in range(40)][
        -1
    ]
    after = sent(envelope.admit(np.zeros(1), None, 1e6))[0]
    assert position - PERIOD_S**2 == pytest.approx(after)


def test_in_no_time_nothing_moves() -> None:
    envelope = Envelope(limits_of(velocity=1.0, acceleration=1.0), "positions", PERIOD_S)
    envelope.admit(np.zeros(1), None, PERIOD_S)
    before = sent(envelope.admit(np.ones(1), None, PERIOD_S))
    for elapsed_s in (0.0, -1.0, math.nan, 1e-12):
        assert sent(envelope.admit(np.ones(1), None, elapsed_s)).tolist() == before.tolist()
    assert not envelope.at_rest.any()
    assert sent(envelope.admit(np.ones(1), None, PERIOD_S)) > before


def test_reset_forgets_what_went_out() -> None:
    envelope = Envelope(limits_of(velocity=1.0, acceleration=4.0), "positions", PERIOD_S)
    for _ in range(5):
        envelope.admit(np.ones(1), np.zeros(1), PERIOD_S)
    envelope.reset()
    assert envelope.at_rest.all()
    assert sent(envelope.hold(np.array([-3.0]), PERIOD_S)).tolist() == [-3.0]


def test_what_is_done_to_an_action_afterwards_is_not_remembered() -> None:
    envelope = Envelope(limits_of(velocity=1.0), "positions", PERIOD_S)
    wanted = np.zeros(1)
    sent(envelope.admit(wanted, None, PERIOD_S))[0] = 7.0
    wanted[0] = 8.0
    assert sent(envelope.hold(None, PERIOD_S)).tolist() == [0.0]


# Steps from the measured position, and position limits of commanded velocities


def test_a_robot_that_stands_still_is_never_commanded_further_than_a_step() -> None:
    for acceleration in (math.inf, 5.0):
        limits = limits_of(velocity=2.0, acceleration=acceleration, max_step=0.2)
        envelope, path = Envelope(limits, "positions", PERIOD_S), []
        for _ in range(60):
            admitted = envelope.admit(np.full(1, 9.0), np.zeros(1), PERIOD_S)
            assert Intervention.STEP in admitted.interventions
            path.append(sent(admitted)[0])
        assert max(path) <= 0.2
        assert path[-1] == pytest.approx(0.2, abs=1e-3)


def test_a_measured_position_that_leaps_does_not_make_the_command_leap() -> None:
    limits = limits_of(position=(-1.0, 1.0), velocity=2.0, acceleration=5.0, max_step=0.2)
    envelope = Envelope(limits, "positions", PERIOD_S)
    assert sent(envelope.admit(np.zeros(1), np.zeros(1), PERIOD_S)).tolist() == [0.0]
    after = sent(envelope.admit(np.zeros(1), np.full(1, 50.0), PERIOD_S))
    assert after == pytest.approx([5.0 * PERIOD_S**2])


def test_a_step_from_beyond_a_position_limit_does_not_lead_there() -> None:
    envelope = Envelope(limits_of(position=(-1.0, 1.0), max_step=0.2), "positions", PERIOD_S)
    for measured, edge in ((50.0, 1.0), (-50.0, -1.0)):
        envelope.reset()
        assert sent(envelope.admit(np.zeros(1), np.zeros(1), PERIOD_S)).tolist() == [0.0]
        admitted = envelope.admit(np.zeros(1), np.full(1, measured), PERIOD_S)
        assert sent(admitted).tolist() == [edge]
        assert admitted.interventions == (Intervention.STEP,)


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.floats(-9.0, 9.0), st.floats(0.0, PERIOD_S)), min_size=1, max_size=80),
    st.floats(0.3, 20.0),
    st.one_of(st.floats(0.3, 50.0), st.just(math.inf)),
)
def test_velocities_keep_a_robot_that_obeys_within_its_positions(
    moments: list[tuple[float, float]], velocity: float, acceleration: float
) -> None:
    limits = limits_of(position=(-1.0, 1.0), velocity=velocity, acceleration=acceleration)
    envelope, position, elapsed_s = Envelope(limits, "velocities", PERIOD_S), np.zeros(1), PERIOD_S
    for wanted, next_s in moments:
        speed = sent(envelope.admit(np.array([wanted]), position, elapsed_s))
        position, elapsed_s = position + speed * next_s, next_s
        assert np.abs(position) <= 1.0 + 1e-12


@pytest.mark.parametrize("acceleration", [1.0, 4.0, 30.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_velocity_towards_a_position_limit_falls_within_the_acceleration(
    acceleration: float, sign: float
) -> None:
    limits = limits_of(position=(-1.0, 1.0), velocity=2.0, acceleration=acceleration)
    envelope, position, speeds = Envelope(limits, "velocities", PERIOD_S), np.zeros(1), [0.0]
    for _ in range(200):
        speed = sent(envelope.admit(np.array([sign * 9.0]), position, PERIOD_S))
        position = position + speed * PERIOD_S
        speeds += speed.tolist()
        assert abs(position) <= 1.0 + 1e-12
    assert np.abs(np.diff(speeds)).max() <= acceleration * PERIOD_S * (1.0 + 1e-9)
    assert position == pytest.approx([sign], abs=1e-3)


def test_after_a_gap_a_velocity_begins_at_rest() -> None:
    envelope = Envelope(limits_of(velocity=1.0, acceleration=2.0), "velocities", PERIOD_S)
    sent_velocities = []
    for elapsed_s in (PERIOD_S, PERIOD_S, 1.4 * PERIOD_S, 1.5 * PERIOD_S + 1e-9):
        sent_velocities.append(float(sent(envelope.admit(np.ones(1), None, elapsed_s))[0]))
    assert sent_velocities == pytest.approx([0.1, 0.2, 0.3, 0.1])


def test_a_velocity_is_braked_in_time_and_may_always_lead_back() -> None:
    limits = limits_of(position=(-1.0, 1.0), velocity=2.0)
    envelope = Envelope(limits, "velocities", PERIOD_S)
    admitted = envelope.admit(np.full(1, 2.0), np.full(1, 0.95), PERIOD_S)
    assert sent(admitted) == pytest.approx([0.05 / PERIOD_S])
    assert admitted.interventions == (Intervention.POSITION,)
    assert sent(envelope.admit(np.full(1, 2.0), np.full(1, 1.2), PERIOD_S)).tolist() == [0.0]
    back = envelope.admit(np.full(1, -2.0), np.full(1, 1.2), PERIOD_S)
    assert sent(back).tolist() == [-2.0]
    assert back.interventions == ()


# What is said


@pytest.mark.parametrize(
    ("field", "limits", "wanted", "reasons"),
    [
        ("positions", {"position": (-1.0, 1.0)}, 2.0, {Intervention.POSITION}),
        ("positions", {"velocity": 1.0}, 0.06, {Intervention.VELOCITY}),
        ("positions", {"acceleration": 1.0}, 0.06, {Intervention.ACCELERATION}),
        ("positions", {"max_step": 0.05}, 0.06, {Intervention.STEP}),
        ("velocities", {"velocity": 1.0}, 2.0, {Intervention.VELOCITY}),
        ("velocities", {"acceleration": 1.0}, 2.0, {Intervention.ACCELERATION}),
        ("velocities", {"position": (-0.05, 0.05)}, 2.0, {Intervention.POSITION}),
        ("accelerations", {"acceleration": 1.0}, 2.0, {Intervention.ACCELERATION}),
        ("effort", {"effort": 1.0}, 2.0, {Intervention.EFFORT}),
        ("effort", {"effort": 1.0}, math.nan, {Intervention.NOT_FINITE}),
    ],
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_intervention_names_its_limit_and_counts_match(
    field: str, limits: dict[str, Any], wanted: float, reasons: set[Intervention], sign: float
) -> None:
    counts: Counter[Intervention] = Counter()
    for _ in range(3):
        envelope = Envelope(limits_of(2, **limits), field, PERIOD_S)
        counts.update(envelope.admit(np.array([0.0, sign * wanted]), np.zeros(2), PERIOD_S).interventions)
        counts.update(envelope.admit(np.zeros(2), None, 100.0).interventions)
    assert counts == dict.fromkeys(reasons, 3)


@pytest.mark.parametrize(
    ("field", "one", "other", "expected"),
    [
        ("positions", {"velocity": 1.0}, {"position_high": 0.5}, ["POSITION", "VELOCITY"]),
        ("positions", {"velocity": 1.0}, {"max_step": 0.5}, ["STEP", "VELOCITY"]),
        ("positions", {"acceleration": 1.0}, {"velocity": 1.0}, ["VELOCITY", "ACCELERATION"]),
        ("velocities", {"acceleration": 1.0}, {"position_high": 0.05}, ["POSITION", "ACCELERATION"]),
        ("velocities", {"acceleration": 1.0}, {"velocity": 1.0}, ["VELOCITY", "ACCELERATION"]),
    ],
)
def test_interventions_come_in_the_order_of_the_limits_not_of_entries(
    field: str, one: dict[str, float], other: dict[str, float], expected: list[str]
) -> None:
    for first, second in ((one, other), (other, one)):
        limits = Limits.from_fields(["first", "second"], {"first": first, "second": second})
        admitted = Envelope(limits, field, PERIOD_S).admit(np.full(2, 2.0), np.zeros(2), PERIOD_S)
        assert [why.name for why in admitted.interventions] == expected


@pytest.mark.parametrize("field", ["positions", "velocities", "accelerations", "effort", "goals"])
def test_an_entry_within_its_limits_adds_no_intervention_to_others(field: str) -> None:
    every = {"position": (-1.0, 1.0), "velocity": 2.0, "acceleration": 40.0, "effort": 1.0, "max_step": 0.5}
    for wanted in (0.0, 0.05, -0.05):
        envelope = Envelope(limits_of(2, **every), [field, "effort"], PERIOD_S)
        admitted = envelope.admit(np.array([wanted, 3.0]), np.zeros(2), PERIOD_S)
        assert sent(admitted).tolist() == [wanted, 1.0]
        assert admitted.interventions == (Intervention.EFFORT,)


def test_wrong_shapes_fields_and_periods_are_refused() -> None:
    limits = limits_of(2)
    envelope = Envelope(limits, "positions", PERIOD_S)
    with pytest.raises(ValueError, match=re.escape("wanted: shape (3,), expected (2,)")):
        envelope.admit(np.zeros(3), None, PERIOD_S)
    with pytest.raises(ValueError, match=re.escape("measured: shape (1, 2), expected (2,)")):
        envelope.admit(np.zeros(2), np.zeros((1, 2)), PERIOD_S)
    with pytest.raises(ValueError, match=re.escape("measured: shape (), expected (2,)")):
        envelope.hold(np.zeros(()), PERIOD_S)
    with pytest.raises(ValueError, match="field: 'torque', must be one of positions, velocities"):
        Envelope(limits, "torque", PERIOD_S)
    for period_s in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"period_s: {period_s}, must be finite and above 0"):
            Envelope(limits, "positions", period_s)


def test_each_entry_may_be_commanded_in_its_own_way() -> None:
    """An arm by velocities and its gripper by position: each is limited as if it were alone."""
    limits = limits_of(2, position=(-1.0, 1.0), velocity=1.0, acceleration=4.0)
    both = Envelope(limits, ["velocities", "positions"], PERIOD_S)
    alone = [
        Envelope(limits_of(1, position=(-1.0, 1.0), velocity=1.0, acceleration=4.0), field, PERIOD_S)
        for field in ("velocities", "positions")
    ]
    measured = np.array([0.9, 0.0])
    for _ in range(20):
        admitted = both.admit(np.full(2, 3.0), measured, PERIOD_S)
        single = [
            each.admit(np.full(1, 3.0), measured[[place]], PERIOD_S) for place, each in enumerate(alone)
        ]
        assert listed(admitted.action) == [one.action[0] for one in single if one.action is not None]
    with pytest.raises(ValueError, match="field: 1, must be one for each of 2 entries"):
        Envelope(limits, ["positions"], PERIOD_S)


def test_a_goal_keeps_its_position_limits_alone_and_is_held_where_it_was() -> None:
    limits = limits_of(1, position=(0.0, 0.04), velocity=0.01, acceleration=0.01, max_step=0.001)
    envelope = Envelope(limits, "goals", PERIOD_S)
    assert envelope.hold(None, PERIOD_S).action is None  # nobody knows where it is
    assert sent(envelope.hold(np.array([0.03]), PERIOD_S)).tolist() == [0.03]
    admitted = envelope.admit(np.array([0.1]), np.array([0.0]), PERIOD_S)
    assert admitted.action is not None
    assert (admitted.action.tolist(), admitted.interventions) == ([0.04], (Intervention.POSITION,))
    held = envelope.hold(np.array([0.02]), PERIOD_S)
    assert held.action is not None
    assert (held.action.tolist(), envelope.at_rest.tolist()) == ([0.04], [True])
    assert sent(envelope.hold(None, PERIOD_S)).tolist() == [0.04]
    for measured in (0.02, math.nan):
        envelope.begin(np.array([measured]))
        assert sent(envelope.hold(None, PERIOD_S)).tolist() == [0.02]  # it stands where it was last seen
    assert not envelope.begin_displaced(np.array([0.0]), PERIOD_S)


# Other paths


def test_a_braking_path_ends_where_the_speed_has_gone() -> None:
    limits = limits_of(3, acceleration=4.0)
    path = stopping_path(np.array([1.0, 1.0, 1.0]), np.array([2.0, -1.0, 0.0]), limits)
    np.testing.assert_allclose(path[0], [1.0, 1.0, 1.0])
    np.testing.assert_allclose(path[-1], [1.5, 0.875, 1.0])  # v^2 / 2a
    half = len(path) // 2  # after .25 s
    np.testing.assert_allclose(path[half], [1.375, 0.875, 1.0])


def test_without_an_acceleration_limit_a_braking_path_is_where_it_begins() -> None:
    path = stopping_path(np.array([1.0]), np.array([2.0]), limits_of(1))
    np.testing.assert_allclose(path, 1.0)


def test_only_entries_that_were_displaced_begin_elsewhere() -> None:
    envelope = Envelope(limits_of(2, max_step=0.1), "positions", PERIOD_S)
    envelope.begin(np.array([0.0, 0.0]))
    assert not envelope.begin_displaced(np.array([0.05, math.nan]), PERIOD_S)
    assert envelope.begin_displaced(np.array([0.3, 0.05]), PERIOD_S)
    assert listed(sent(envelope.hold(None, PERIOD_S))) == [0.3, 0.0]


@pytest.mark.parametrize(("period_s", "window_s"), [(0.05, WINDOW_S), (0.5, 1.5)])
def test_a_lag_counts_once_a_whole_window_of_commands_is_known(period_s: float, window_s: float) -> None:
    following = Following(np.array([0.1]), period_s)
    for step in range(40):
        now_s = 0.05 * step
        following.commanded(np.array([0.0]), now_s)
        found = following.error(np.array([0.2]), now_s)
        assert (found is not None) == (now_s >= window_s - 1e-9), now_s
    following.commanded(np.array([0.15]), 2.0)  # the arm is between the commands of the window
    assert following.error(np.array([0.2]), 2.0) is None
    for step in range(41, 80):
        following.commanded(np.array([0.0]), 0.05 * step)
        late = following.error(np.array([0.2]), 0.05 * step)
        assert (late is not None) == (0.05 * step > 2.05 + window_s - 1e-9), step
    following.reset()
    assert following.error(np.array([0.2]), 3.0) is None


@pytest.mark.parametrize("holds", [False, True])
@pytest.mark.parametrize("late_s", [0.016, 0.03, 0.065])
def test_a_late_velocity_changes_within_the_acceleration_limit(late_s: float, holds: bool) -> None:
    envelope = Envelope(limits_of(velocity=2.0, acceleration=4.0), "velocities", 0.01)
    for _ in range(50):
        before = sent(envelope.admit(np.array([1.5]), None, 0.01))[0]
    made = envelope.hold(None, late_s) if holds else envelope.admit(np.array([-1.5]), None, late_s)
    assert before == 1.5
    assert sent(made)[0] == pytest.approx(1.5 - 4.0 * 0.01)


def test_a_velocity_after_a_gap_starts_at_rest() -> None:
    envelope = Envelope(limits_of(velocity=2.0, acceleration=4.0), "velocities", 0.01)
    for _ in range(50):
        envelope.admit(np.array([1.5]), None, 0.01)
    assert sent(envelope.admit(np.array([1.5]), None, 0.07))[0] == pytest.approx(0.04)

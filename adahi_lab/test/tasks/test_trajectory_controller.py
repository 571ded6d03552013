"""What a trajectory controller makes of a point, and what it asks of the arm."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_lab.tasks.trajectory_controller import TrajectoryController
from adahi_ros.core.command_curve import Curve

PERIOD_S = 0.05
NOW_S = 1000.0
AGE_S = 0.04  # of the observation, when its command arrives
LIMIT = 2.0
STEP = np.array([LIMIT * PERIOD_S, -0.5 * LIMIT * PERIOD_S])  # the largest within the limit


def point(place: np.ndarray, velocities: np.ndarray | None = None) -> Curve:
    """Return a trajectory of one point, a period after its stamp."""
    unknown = np.full(len(place), np.nan)
    return Curve(np.array([PERIOD_S]), place[None], (unknown if velocities is None else velocities)[None])


def requested_with(stamp_s: float) -> np.ndarray:
    controller = TrajectoryController(np.zeros(2))
    controller.receive(point(STEP), stamp_s, NOW_S)
    return controller.peak_speed


def test_time_from_the_observation_on_asks_for_more_than_the_limit() -> None:
    np.testing.assert_allclose(requested_with(0.0), [LIMIT, 0.5 * LIMIT])
    np.testing.assert_allclose(requested_with(NOW_S), [LIMIT, 0.5 * LIMIT])
    np.testing.assert_allclose(requested_with(NOW_S - AGE_S)[0], LIMIT * PERIOD_S / (PERIOD_S - AGE_S))


@given(
    st.lists(st.floats(-2, 2), min_size=2, max_size=2),
    st.lists(st.floats(-2, 2), min_size=2, max_size=2),
    st.floats(0.01, 1.0),
)
def test_a_cubic_meets_both_ends_and_its_peaks_are_recorded(
    first: list[float], second: list[float], share: float
) -> None:
    """By brute force: no sample is faster, or accelerates more, than what was recorded."""
    controller = TrajectoryController(np.zeros(2))
    now_s = 0.0
    for velocities in (np.array(first), np.array(second)):
        before = controller.sample(now_s)
        controller.receive(point(before.positions + 0.1 * velocities, velocities), 0.0, now_s)
        times = now_s + np.linspace(0.0, PERIOD_S * (1 - 1e-9), 400)
        samples = [controller.sample(each) for each in times]
        np.testing.assert_allclose(samples[0].positions, before.positions, atol=1e-12)
        np.testing.assert_allclose(samples[0].velocities, before.velocities, atol=1e-9)
        np.testing.assert_allclose(samples[-1].velocities, velocities, atol=1e-6)
        speeds = np.array([each.velocities for each in samples])
        assert (np.abs(speeds) <= controller.peak_speed + 1e-9).all()
        accelerations = np.diff(speeds, axis=0) / np.diff(times)[:, None]
        assert (np.abs(accelerations) <= controller.peak_acceleration * (1 + 1e-4) + 1e-6).all()
        now_s += share * PERIOD_S


def test_a_trajectory_that_ends_in_the_past_is_dropped() -> None:
    controller = TrajectoryController(np.zeros(2))
    with pytest.raises(ValueError, match=r"header\.stamp: 0\.060 s old, must be at most 0\.05 s"):
        controller.receive(point(STEP), NOW_S - 0.06, NOW_S)
    np.testing.assert_array_equal(controller.sample(NOW_S).positions, np.zeros(2))
    assert not controller.peak_speed.any()


def test_a_trajectory_that_has_begun_is_followed_from_its_place_now_on() -> None:
    """Also where the set point jumps: that shows in what is recorded."""
    controller = TrajectoryController(np.zeros(1))
    times_s, places, speeds = np.array([0.0, 0.1, 0.2]), np.array([[0.0], [0.1], [0.2]]), np.ones((3, 1))
    controller.receive(Curve(times_s, places, speeds), 10.0, 10.0)
    assert controller.sample(10.05).positions == pytest.approx([0.05])
    controller.receive(Curve(times_s, places, speeds), 10.02, 10.05)
    assert controller.sample(10.05).positions == pytest.approx([0.03])
    assert controller.largest_jump == pytest.approx([0.02])
    assert controller.sample(10.19).positions == pytest.approx([0.17])
    assert controller.sample(11.0).positions == pytest.approx([0.2])

from __future__ import annotations

import re

import numpy as np
import pytest

from adahi_ros.gates.gate_config import SHORTEST_AVERAGE, DeviationTracker

SCALE = np.array([2.0, 0.5])
SERIES = np.array([[2.0, 0.0], [4.0, 0.5], [0.0, -0.5]])  # scaled: [1, 0], [2, 1], [0, -1]


def deviations(tracker: DeviationTracker, series: np.ndarray) -> list[float]:
    seen = []
    for action in series:
        seen.append(float(tracker.deviation(action[None])[0]))
        tracker.update(action[None])
    return seen


# With smoothing 0.25 the average is [1, 0] after the first action, [1.25, 0.25] after the second.
@pytest.mark.parametrize(
    ("normalization", "second", "third"),
    [
        ("std", np.sqrt((1.0**2 + 1.0**2) / 2), np.sqrt((1.25**2 + 1.25**2) / 2)),
        ("average", np.hypot(1.0, 1.0) / 1.0, np.hypot(1.25, 1.25) / np.hypot(1.25, 0.25)),
    ],
)
def test_a_series_by_hand(normalization: str, second: float, third: float) -> None:
    seen = deviations(DeviationTracker(SCALE, 0.25, normalization), SERIES)
    assert seen[0] == np.inf
    assert seen[1:] == pytest.approx([second, third])


def test_smoothing_one_measures_the_distance_to_the_action_before() -> None:
    seen = deviations(DeviationTracker(SCALE, 1.0, "std"), SERIES)
    assert seen[1:] == pytest.approx([np.sqrt((1 + 1) / 2), np.sqrt((4 + 4) / 2)])


@pytest.mark.parametrize("normalization", ["std", "average"])
def test_robots_do_not_mix_and_a_reset_forgets(normalization: str) -> None:
    draw = np.random.default_rng(0)
    series = draw.normal(size=(6, 3, 2))
    together = DeviationTracker(SCALE, 0.4, normalization)
    for again in range(2):
        together.reset()
        seen = []
        for actions in series:
            seen.append(together.deviation(actions))
            together.update(actions)
        assert np.isinf(seen[0]).all(), again
        for robot in range(3):
            alone = deviations(DeviationTracker(SCALE, 0.4, normalization), series[:, robot])
            np.testing.assert_allclose(np.stack(seen)[:, robot], alone)


def test_an_average_of_length_zero_is_not_divided_by() -> None:
    tracker = DeviationTracker(SCALE, 0.5, "average")
    tracker.update(np.zeros((1, 2)))
    np.testing.assert_allclose(tracker.deviation(np.array([[2.0, 0.0]])), [1.0 / SHORTEST_AVERAGE])


@pytest.mark.parametrize("smoothing", [0.0, -0.5, 1.01, np.nan, np.inf])
def test_smoothing_out_of_range_is_refused(smoothing: float) -> None:
    with pytest.raises(ValueError, match=re.escape(f"smoothing: {smoothing}, must be above 0 and at most 1")):
        DeviationTracker(SCALE, smoothing, "std")


def test_an_unknown_normalization_is_refused() -> None:
    with pytest.raises(ValueError, match="normalization: 'range', must be one of average, std"):
        DeviationTracker(SCALE, 0.5, "range")

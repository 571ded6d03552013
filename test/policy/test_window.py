from __future__ import annotations

import re

import numpy as np
import pytest

from adahi_ros.policy.history import ObservationWindow


def test_the_first_observation_is_repeated_until_the_window_is_full() -> None:
    window = ObservationWindow(2, 3, 1)
    seen = [window.push(np.array([[step], [10.0 * step]]))[..., 0].tolist() for step in range(1, 5)]
    assert seen[0] == [[1, 1, 1], [10, 10, 10]]
    assert seen[1] == [[1, 1, 2], [10, 10, 20]]
    assert seen[2] == [[1, 2, 3], [10, 20, 30]]
    assert seen[3] == [[2, 3, 4], [20, 30, 40]]
    window.reset()
    assert window.push(np.array([[7.0], [8.0]]))[..., 0].tolist() == [[7, 7, 7], [8, 8, 8]]


def test_a_window_given_out_stays_as_it_was() -> None:
    window = ObservationWindow(1, 2, 1)
    first = window.push(np.array([[1.0]]))
    assert first.dtype == np.float32
    first[:] = 99.0
    np.testing.assert_array_equal(window.push(np.array([[2.0]])), [[[1.0], [2.0]]])


@pytest.mark.parametrize(
    ("observations", "message"),
    [
        (np.zeros((1, 3)), "observation: shape (1, 3), expected (1, 2)"),
        (np.zeros((2, 2)), "observation: shape (2, 2), expected (1, 2)"),
        (np.array([[0.0, np.nan]]), "observation: holds values that are not finite"),
        (np.array([[-np.inf, 0.0]]), "observation: holds values that are not finite"),
        (np.array([[1e300, 0.0]]), "observation: holds values that are not finite"),  # in float32
    ],
)
def test_garbage_is_refused_and_not_kept(observations: np.ndarray, message: str) -> None:
    window = ObservationWindow(1, 2, 2)
    window.push(np.array([[1.0, 2.0]]))
    with pytest.raises(ValueError, match=re.escape(message)):
        window.push(observations)
    np.testing.assert_array_equal(window.push(np.array([[3.0, 4.0]])), [[[1, 2], [3, 4]]])

from __future__ import annotations

import re

import numpy as np
import pytest

from adahi_lab.history import History
from adahi_ros.core.signature import Feature, Signature


def reading(length: int, size: int) -> Signature:
    """A policy that reads one feature."""
    return Signature(length, 1, 1, (Feature("observation", size),))


def push(history: History, values: np.ndarray) -> np.ndarray:
    return history.push({"observation": values}).features["observation"]


def test_the_first_observation_is_repeated_until_the_window_is_full() -> None:
    history = History(reading(3, 1), 2)
    seen = [push(history, np.array([[step], [10.0 * step]]))[..., 0].tolist() for step in range(1, 5)]
    assert seen[0] == [[1, 1, 1], [10, 10, 10]]
    assert seen[1] == [[1, 1, 2], [10, 10, 20]]
    assert seen[2] == [[1, 2, 3], [10, 20, 30]]
    assert seen[3] == [[2, 3, 4], [20, 30, 40]]
    again = History(reading(3, 1), 2)
    assert push(again, np.array([[7.0], [8.0]]))[..., 0].tolist() == [[7, 7, 7], [8, 8, 8]]


def test_a_window_given_out_stays_as_it_was() -> None:
    history = History(reading(2, 1), 1)
    first = push(history, np.array([[1.0]]))
    assert first.dtype == np.float32
    first[:] = 99.0
    np.testing.assert_array_equal(push(history, np.array([[2.0]])), [[[1.0], [2.0]]])


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
    history = History(reading(2, 2), 1)
    push(history, np.array([[1.0, 2.0]]))
    with pytest.raises(ValueError, match=re.escape(message)):
        push(history, observations)
    np.testing.assert_array_equal(push(history, np.array([[3.0, 4.0]])), [[[1, 2], [3, 4]]])


def test_a_policy_sees_what_it_reads_and_its_conditions_as_they_are_now() -> None:
    signature = Signature(2, 1, 1, (Feature("b", 1), Feature("a", 2)), (Feature("goal", 1),))
    history = History(signature, 1)
    for step in range(3):
        observed = {
            "a": np.full((1, 2), step),
            "b": np.full((1, 1), -step),
            "goal": np.full((1, 1), 10 * step),
            "unread": np.full((1, 9), np.nan),
        }
        seen = history.push(observed, ("fold",))
    assert seen.features.keys() == {"a", "b"}
    assert seen.features["a"].tolist() == [[[1, 1], [2, 2]]]
    assert seen.features["b"].tolist() == [[[-1], [-2]]]
    assert seen.conditions["goal"].tolist() == [[20]]
    assert seen.instructions == ("fold",)


def test_what_is_read_must_be_there() -> None:
    history = History(Signature(1, 1, 1, (Feature("a", 1),), (Feature("goal", 1),)), 1)
    with pytest.raises(ValueError, match=r"^goal: missing, there are a, b$"):
        history.push({"a": np.zeros((1, 1)), "b": np.zeros((1, 1))})
    with pytest.raises(ValueError, match=r"^a: missing, there are none$"):
        history.push({})

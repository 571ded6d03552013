"""The search of a Lights Out puzzle."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from adahi_lab.tasks.lights_out import LightsOut


@pytest.mark.parametrize(("rows", "columns", "solutions"), [(3, 3, 1), (4, 4, 16), (4, 5, 1), (2, 3, 4)])
def test_every_solution_changes_just_the_wrong_lights(rows: int, columns: int, solutions: int) -> None:
    board = LightsOut(rows, columns, 0.1)
    pressed = np.random.default_rng(0).integers(0, 2, (20, rows * columns))
    wrong = pressed @ board.changes.T % 2
    found = board.presses(wrong)
    assert found.shape == (20, solutions, rows * columns)
    np.testing.assert_array_equal(found @ board.changes.T % 2, np.repeat(wrong[:, None], solutions, axis=1))


def test_marks_are_of_as_few_presses_as_any_solution() -> None:
    board = LightsOut(2, 3, 0.1)
    every = np.array(list(product((0, 1), repeat=6)))
    for wrong in every @ board.changes.T % 2:
        fewest = min(pressed.sum() for pressed in every if (board.changes @ pressed % 2 == wrong).all())
        marks = board.marks(np.zeros((1, 2)), wrong[None])[0]
        assert (marks > 0).sum() == fewest
        np.testing.assert_array_equal(board.changes @ (marks > 0) % 2, wrong)
        assert sorted(marks[marks > 0], reverse=True) == [0.5**step for step in range(fewest)]


def test_the_nearest_press_is_next_and_stays_so_on_the_way() -> None:
    board = LightsOut(4, 4, 0.1)
    draws = np.random.default_rng(1)
    wrong = draws.integers(0, 2, (50, 16)) @ board.changes.T % 2
    hand = draws.uniform(-0.2, 0.2, (50, 2))
    following = board.marks(hand, wrong).argmax(axis=1)
    half_way = (hand + board.places[following]) / 2.0
    some = wrong.any(axis=1)
    np.testing.assert_array_equal(board.marks(half_way, wrong).argmax(axis=1)[some], following[some])

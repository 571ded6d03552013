# SPDX-License-Identifier: Apache-2.0
"""Lights Out: a press changes a button's light and those beside it. Finds the fewest presses, in order."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np

BESIDE = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))
ROWS, COLUMNS, DISTANCE_M = 4, 4, 0.1  # of OGBench's puzzle
ARM = 6  # joints: its observation begins with their positions and velocities, then the hand's place
HAND_M = 10.0  # units of that place, per m


class LightsOut:
    """A board of N lights, all of which are buttons.

    Solutions are found by elimination over the field of two elements (Anderson and Feil, "Turning Lights Out
    with Linear Algebra", 1998). Boards such as 4 x 4 have presses without effect, which give every puzzle
    several solutions.

    Attributes:
        places: (N, 2) m, of the buttons.
        changes: (N, N) of 0 and 1: column n has the lights that button n changes.

    Args:
        rows, columns: of the board.
        distance_m: between neighbours.
    """

    def __init__(self, rows: int, columns: int, distance_m: float) -> None:
        grid = np.stack(np.divmod(np.arange(rows * columns), columns), axis=1)
        self.places = (grid - grid.mean(axis=0)) * distance_m
        offsets = (grid[:, None] - grid[None]).tolist()
        self.changes = np.array([[tuple(offset) in BESIDE for offset in row] for row in offsets], dtype=int)
        self._solving, self._idle = _solved(self.changes)

    def presses(self, wrong: np.ndarray) -> np.ndarray:
        """Return all solutions, (B, S, N) of 0 and 1, for the lights (B, N) that have to change."""
        one = wrong.astype(int) @ self._solving.T % 2
        return one[:, None] ^ self._idle

    def marks(self, hand: np.ndarray, wrong: np.ndarray) -> np.ndarray:
        """Return a shortest solution, in order from a hand's places (B, 2), as marks (B, N) float32.

        The button to press next has 1, each following one half of that before it, all others 0. The next is
        the nearest of all shortest solutions; then each time the nearest. So the hand's way changes nothing.
        """
        solutions, which = self.presses(wrong), np.arange(len(wrong))
        away = np.linalg.norm(hand[:, None] - self.places, axis=2)  # (B, N)
        nearest = np.where(solutions > 0, away[:, None], np.inf).min(axis=2)
        counts = solutions.sum(axis=2)
        best = np.where(counts == counts.min(axis=1, keepdims=True), nearest, np.inf).argmin(axis=1)
        left = solutions[which, best] > 0
        marks, mark, at = np.zeros(wrong.shape, dtype=np.float32), 1.0, hand
        while left.any():
            away = np.linalg.norm(at[:, None] - self.places, axis=2)
            following = np.where(left, away, np.inf).argmin(axis=1)
            marks[which, following] += mark * left[which, following]
            left[which, following] = False
            at, mark = self.places[following], mark / 2.0
        return marks


def _solved(changes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix from wrong lights to presses, (N, N), and all presses without effect, (S, N)."""
    count = len(changes)
    rows = np.concatenate([changes, np.eye(count, dtype=int)], axis=1)
    pivots: list[int] = []
    for column in range(count):
        below = np.flatnonzero(rows[len(pivots) :, column]) + len(pivots)
        if len(below):
            rows[[len(pivots), below[0]]] = rows[[below[0], len(pivots)]]
            others = np.flatnonzero(rows[:, column])
            rows[others[others != len(pivots)]] ^= rows[len(pivots)]
            pivots.append(column)
    free = [column for column in range(count) if column not in pivots]
    solving = np.zeros((count, count), dtype=int)
    solving[pivots] = rows[: len(pivots), count:]
    idle = np.zeros((len(free), count), dtype=int)
    idle[np.arange(len(free)), free] = 1
    idle[:, pivots] = rows[: len(pivots), free].T
    combined = np.array(list(product((0, 1), repeat=len(free))), dtype=int)
    return solving, combined @ idle % 2


@lru_cache(maxsize=1)
def board() -> LightsOut:
    """Return the board of OGBench's puzzle."""
    return LightsOut(ROWS, COLUMNS, DISTANCE_M)


def hand_of(observation: np.ndarray) -> np.ndarray:
    """Return the hand's places (..., 2), m from the board's middle, in observations (..., O)."""
    place: np.ndarray = observation[..., 2 * ARM : 2 * ARM + 2] / HAND_M
    return place

# SPDX-License-Identifier: Apache-2.0
"""Positions of joints that turn without end, which drivers may report in (-pi, pi]."""

from __future__ import annotations

import math

import numpy as np

TURN = 2.0 * math.pi


def nearest_turn(measured: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the same angles (A,), each moved by whole turns to within half a turn of a reference (A,).

    An angle is unchanged where it, or its reference, is not finite.
    """
    with np.errstate(invalid="ignore"):
        turns = np.round((reference - measured) / TURN)
    return np.where(np.isfinite(turns), measured + TURN * np.where(np.isfinite(turns), turns, 0.0), measured)


class Unwrapped:
    """Measured positions whose continuous joints stay close to the commanded ones.

    Without this, a joint that passes pi is measured a whole turn away from its last command: a governor
    would turn it back, or hold the robot.

    Args:
        continuous: (A,) bool, the entries that are angles without limits.
    """

    def __init__(self, continuous: np.ndarray) -> None:
        self._continuous = np.array(continuous, dtype=bool)
        self._some = bool(self._continuous.any())

    def __call__(self, measured: np.ndarray, commanded: np.ndarray | None) -> np.ndarray:
        """Return measured positions (A,) in the turn of the commanded ones, where there are any."""
        if commanded is None or not self._some:
            return measured
        return np.where(self._continuous, nearest_turn(measured, commanded), measured)

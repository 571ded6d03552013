# SPDX-License-Identifier: Apache-2.0
"""Decides which states of a plan to check for collisions, and whether the arm may go on. No ROS, no clock."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

VALID = "valid"
MOST_CHECKS = 512
RENEWED = 0.5  # share of its time after which a state is checked again


@dataclass(frozen=True)
class StateCheck:
    """The result of a check.

    Attributes:
        state: (J,), rad or m.
        now_s: when it was checked.
        fault: why it is not valid; empty where it is.
    """

    state: np.ndarray
    now_s: float
    fault: str


class PlannedStates:
    """The states that a plan reaches soon, and what is known of them.

    Args:
        ahead_s: the states are checked that the plan reaches within this time.
        tolerance: a state is known if one was checked that has every joint this near, rad or m.
        lasts_s: how long a check counts; the scene may change.
        patience_s: how long the arm may use states that are not known.
    """

    def __init__(self, ahead_s: float, tolerance: float, lasts_s: float, patience_s: float) -> None:
        self._ahead_s, self._tolerance, self._lasts_s = ahead_s, tolerance, lasts_s
        self._patience_s = patience_s
        self._times_s, self._states = np.zeros(0), np.zeros((0, 0))
        self._checks: deque[StateCheck] = deque(maxlen=MOST_CHECKS)
        self._known_s: float | None = None  # when the next state was known last, or nothing was planned

    def plan(self, times_s: np.ndarray, states: np.ndarray) -> None:
        """Take a plan instead of the former one.

        Args:
            times_s: (K,), when it reaches its states.
            states: (K, J).
        """
        if states.shape[1] != self._states.shape[1]:
            self._checks.clear()
        self._times_s, self._states = times_s, states

    def checked(self, check: StateCheck) -> None:
        """Take the result of a check."""
        self._checks.append(check)

    def unknown(self, now_s: float) -> np.ndarray | None:
        """Return the first state (J,) of the plan that is not known, or soon not any more; None for none."""
        pairs = list(zip(*self._known(now_s), strict=True))
        for least_s in (-math.inf, now_s - RENEWED * self._lasts_s):
            for state, check in pairs:
                if check is None or check.now_s < least_s:
                    return state
        return None

    def validity(self, now_s: float) -> str:
        """Return `VALID` where the arm may go on, else why not."""
        _, known = self._known(now_s)
        if faults := [check.fault for check in known if check is not None and check.fault]:
            return faults[0]
        if self._known_s is None or not known or known[0] is not None:
            self._known_s = now_s
        late = now_s - self._known_s > self._patience_s
        return f"MoveIt did not answer for {self._patience_s:g} s" if late else VALID

    def _known(self, now_s: float) -> tuple[np.ndarray, list[StateCheck | None]]:
        """Return the states (K, J) that are due, and the newest check that counts for each."""
        coming = self._states[(self._times_s >= now_s) & (self._times_s <= now_s + self._ahead_s)]
        newest = [check for check in reversed(self._checks) if now_s - check.now_s <= self._lasts_s]
        if not newest or not len(coming):
            return coming, [None] * len(coming)
        apart = np.abs(coming[:, None] - np.array([check.state for check in newest])).max(axis=2)
        near = apart <= self._tolerance
        return coming, [newest[row.argmax()] if row.any() else None for row in near]

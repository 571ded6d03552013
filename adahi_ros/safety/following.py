# SPDX-License-Identifier: Apache-2.0
"""Where an arm is, compared with its commands: following error, whole turns, and where it can stop."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from adahi_ros.safety.limits import Limits

WINDOW_S = 0.5  # an arm has to be where it was commanded within this time
COMMANDS_KEPT = 1024


class Following:
    """Compares where an arm is measured with all that was commanded in the last `WINDOW_S`.

    An arm that lags is somewhere between the commands of the window, whatever its speed. An arm in a
    protective stop is not. It knows no clock.

    Args:
        limit: (A,) largest distance from what was commanded, infinite where none is checked.
    """

    def __init__(self, limit: np.ndarray) -> None:
        self._limit = limit
        self._checks = bool(np.isfinite(limit).any())
        self._commands: deque[tuple[float, np.ndarray]] = deque(maxlen=COMMANDS_KEPT)
        self._since_s = float("inf")

    def reset(self) -> None:
        """Begin a new window: the robot was held, or begins from where it is measured."""
        self._commands.clear()
        self._since_s = float("inf")

    def commanded(self, positions: np.ndarray, now_s: float) -> None:
        """Take a command (A,)."""
        if not self._commands:
            self._since_s = now_s
        self._commands.append((now_s, positions))

    def error(self, measured: np.ndarray | None, now_s: float) -> int | None:
        """Return the first entry that does not follow; None where all do, or the window is not full yet.

        Args:
            measured: (A,) positions, NaN where unknown; None where none is known.
            now_s: the time.
        """
        while len(self._commands) > 1 and self._commands[1][0] <= now_s - WINDOW_S:
            self._commands.popleft()  # the one before the window is what the arm had at its begin
        if not self._checks or measured is None or not self._commands or now_s - self._since_s < WINDOW_S:
            return None
        window = np.array([positions for _, positions in self._commands])
        with np.errstate(invalid="ignore"):
            off = np.maximum(window.min(axis=0) - measured, measured - window.max(axis=0))
            beyond = np.flatnonzero(off > self._limit)
        return int(beyond[0]) if len(beyond) else None


TURN = 2.0 * math.pi
POINTS = 5  # of the path of an arm that brakes


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


def fastest(start: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the largest speed (A,) of a cubic that ends with its mean velocity.

    Its velocity is start + 4 (mean - start) t - 3 (mean - start) t^2 with t from 0 to 1, which is furthest
    at t = 2/3: a third of the change beyond the mean (Hermite).

    Args:
        start: (A,) velocity at its begin.
        mean: (A,) displacement over its duration, also the velocity at its end.
    """
    return np.maximum(np.abs(start), np.abs(mean + (mean - start) / 3.0))


def stopping_path(start: np.ndarray, speeds: np.ndarray, limits: Limits) -> np.ndarray:
    """Return where an arm passes (P, A) that brakes: at first, on the way, and at rest.

    Args:
        start: (A,) position.
        speeds: (A,) there, per s.
        limits: of the arm.
    """
    brakes_s = np.abs(speeds) / limits.acceleration
    passed_s = np.minimum(np.linspace(0.0, brakes_s.max(), POINTS)[:, None], brakes_s)
    left = 1.0 - 0.5 * np.divide(passed_s, brakes_s, out=np.zeros_like(passed_s), where=brakes_s > 0.0)
    return start + speeds * passed_s * left

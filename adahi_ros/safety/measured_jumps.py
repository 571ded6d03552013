# SPDX-License-Identifier: Apache-2.0
"""Measured positions that change faster than the arm can: they are no measurement of it."""

from __future__ import annotations

import numpy as np

from adahi_ros.safety.envelope import nearest_turn
from adahi_ros.safety.limits import Limits

SPEEDS = 3.0  # an arm that is pushed, or a late stamp, is not as fast as this many velocity limits


class MeasuredJumps:
    """Compares each measured position with the one before.

    Args:
        limits: of the A entries. Entries without `max_step` or a velocity limit are not compared.
        positions: (A,) bool, entries that are positions.
        longest_s: an arm without commands does not move for longer than this.
    """

    def __init__(self, limits: Limits, positions: np.ndarray, longest_s: float) -> None:
        self._turning = limits.continuous & positions
        self._longest_s = longest_s
        known = positions & np.isfinite(limits.max_step) & np.isfinite(limits.velocity)
        self._names = limits.names
        self._step = np.where(known, limits.max_step, np.inf)
        self._speed = np.where(known, SPEEDS * limits.velocity, 0.0)
        self.forget()

    def forget(self) -> None:
        """Forget the measurement before: the next one may be anywhere."""
        self._before: tuple[np.ndarray, float] | None = None

    def fault(self, measured: np.ndarray | None, stamp_s: float) -> str:
        """Return why a measurement cannot be right after the one before, for people; empty where it can.

        Args:
            measured: (A,), NaN where unknown; None if all are unknown.
            stamp_s: when it was measured.
        """
        if measured is None:
            return ""
        before, self._before = self._before, (measured, stamp_s)
        if before is None:
            return ""
        measured = np.where(self._turning, nearest_turn(measured, before[0]), measured)
        passed_s = max(0.0, stamp_s - before[1])
        elapsed_s = min(passed_s, self._longest_s / SPEEDS)
        with np.errstate(invalid="ignore"):
            jumped = np.flatnonzero(np.abs(measured - before[0]) > self._step + elapsed_s * self._speed)
        if not len(jumped):
            return ""
        entry = jumped[0]
        return (
            f"{self._names[entry]} was measured at {before[0][entry]:.3g} and {passed_s:.3g} s later at "
            f"{measured[entry]:.3g}, more than max_step and 3 times velocity allow; does one program alone "
            "publish it?"
        )

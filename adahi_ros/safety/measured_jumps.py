# SPDX-License-Identifier: Apache-2.0
"""Measured positions where an arm cannot be: they are no measurement of it, or it was moved."""

from __future__ import annotations

import numpy as np

from adahi_ros.safety.envelope import Envelope, Motion, Unwrapped, nearest_turn
from adahi_ros.safety.holds import Event
from adahi_ros.safety.limits import Limits
from adahi_ros.safety.permission import Permission

SETTLED_S = 0.5  # the measurement of a robot that moved lags this long behind
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


class MeasuredArm:
    """Where an arm is measured; holds it where it cannot be, or was not left.

    Attributes:
        unwrapped: keeps continuous joints close to a reference.

    Args:
        envelope: of the robot.
        motion: of its commands.
        permission: of the operator, with the holds.
        longest_s: see `MeasuredJumps`.
    """

    def __init__(self, envelope: Envelope, motion: Motion, permission: Permission, longest_s: float) -> None:
        self._limits = envelope.limits
        self._reach = np.where(envelope.positions, envelope.limits.max_step, np.inf)
        self._motion = motion
        self.unwrapped = Unwrapped(envelope.turning)
        self._jumps = MeasuredJumps(envelope.limits, envelope.positions, longest_s)
        self._permission = permission
        self._jumped_s = motion.put_s
        self._measured: np.ndarray | None = None  # (A,), the newest measurement
        self._presses = permission.presses

    def forget(self, anywhere: bool = True) -> None:
        """Forget the measurement before; note whether the arm may be anywhere.

        A simulator has set it there, or the node was not active.
        """
        self._jumps.forget()
        self._motion.anywhere |= anywhere

    def measure(self, measured: np.ndarray | None, now_s: float, stamp_s: float | None) -> np.ndarray | None:
        """Return measured positions (A,) in the turn of the commanded ones; hold the arm after a jump.

        Args:
            measured: (A,), NaN where unknown; None if all are unknown.
            now_s: the time.
            stamp_s: when they were measured, on any clock; None for now.
        """
        if self._presses != self._permission.presses:
            self._presses, self._motion.pressed_at = self._permission.presses, self._measured
        if measured is not None:
            self._measured = measured = self.unwrapped(measured, self._motion.at)
        if jump := self._jumps.fault(measured, now_s if stamp_s is None else stamp_s):
            self._hold(jump, now_s)
        elif now_s - self._jumped_s >= SETTLED_S:
            self._permission.holds.happen(Event.STEADY)
        return measured

    def off(self, measured: np.ndarray) -> np.ndarray:
        """Return the entries (A,) that are measured further than `max_step` from the last command."""
        at = self._motion.at
        if at is None:
            return np.zeros(len(measured), dtype=bool)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(self.unwrapped(measured, at) - at) > self._reach)

    def elsewhere(self, measured: np.ndarray | None, now_s: float) -> bool:
        """Whether the arm is not where it was commanded, nor measured at the newest press; then hold it.

        Someone may have moved it, or another program measures it: the operator looks before it moves on.
        """
        at, seen = self._motion.at, self._motion.pressed_at
        if measured is None or at is None or self._motion.anywhere:
            return False
        seen = at if seen is None else seen
        with np.errstate(invalid="ignore"):
            seen_there = np.abs(measured - self.unwrapped(seen, at)) <= self._reach  # false where unknown
        entries = np.flatnonzero(self.off(measured) & ~seen_there)
        if not len(entries):
            return False
        name, entry = self._limits.names[entries[0]], entries[0]
        self._hold(f"{name} is at {measured[entry]:.3g} and was commanded to {at[entry]:.3g}", now_s)
        return True

    def _hold(self, why: str, now_s: float) -> None:
        self._jumped_s = now_s
        self._permission.holds.happen(Event.JUMPS, why)

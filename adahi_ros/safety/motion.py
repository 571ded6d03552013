# SPDX-License-Identifier: Apache-2.0
"""What the commands of an arm make it do: where it is commanded, how fast, and since when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_ros.safety.envelope import RESTS, fastest

HOLDS_AT_REST = 3  # several, because one may be lost


@dataclass
class Motion:
    """The commands so far, of an arm that reaches each within a control period and then stands.

    Attributes:
        period_s: of the control.
        put_s: when the last command was made.
        moved_s: when the last command was made that may have moved the arm.
        at: (A,), the last command; None before the first.
        speeds: (A,), mean velocities towards it; None where they are unknown.
        interval_s: between the last two commands, at most a period.
        moving: the commands may move the arm, or may have been lost.
        rested: commands at rest so far, of the present hold.
        resting: positions were held in a gap, and have not been moved since.
    """

    period_s: float
    put_s: float
    moved_s: float
    at: np.ndarray | None = None
    speeds: np.ndarray | None = None
    interval_s: float = 0.0
    moving: bool = False
    rested: int = 0
    resting: bool = False

    def elapsed_s(self, now_s: float) -> float:
        """Return the time since the last command, for the next one."""
        elapsed_s, self.put_s = now_s - self.put_s, now_s
        self.interval_s = min(elapsed_s, self.period_s)
        return elapsed_s

    def gap(self, now_s: float) -> bool:
        """Whether the arm stands, because the last command is long ago."""
        return now_s - self.put_s >= RESTS * self.period_s

    def put(self, command: np.ndarray) -> None:
        """Note a command (A,)."""
        known = self.at is not None and self.interval_s > 0.0
        self.speeds = (command - self.at) / self.interval_s if known else None
        self.at = command

    def begins(self, now_s: float) -> None:
        """Note that the next command moves the arm."""
        self.moving, self.resting, self.rested, self.moved_s = True, False, 0, now_s

    def brakes(self, at_rest: bool) -> None:
        """Note a command that brakes the arm; at rest, it stands once it has reached it."""
        if at_rest:
            self.rested += 1
        else:
            self.rested, self.moved_s = 0, self.put_s
        self.moving = self.rested < HOLDS_AT_REST

    def velocities(self, action: np.ndarray | None, elapsed_s: float, limit: np.ndarray) -> np.ndarray | None:
        """Return the velocities (A,) at the next command, if a cubic to it stays within the velocity limits.

        Args:
            action: (A,), the next command; None for none.
            elapsed_s: since the last one.
            limit: (A,), largest speeds.
        """
        interval_s, before = min(elapsed_s, self.period_s), self.speeds
        if action is None or self.at is None or interval_s <= 0.0:
            return None
        mean = (action - self.at) / interval_s
        rest = np.zeros_like(mean)
        # At the end of a segment the controller may still have its speed, or stand.
        starts = (rest,) if before is None or elapsed_s >= RESTS * self.period_s else (before, rest)
        return mean if all((fastest(start, mean) <= limit).all() for start in starts) else None

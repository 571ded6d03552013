# SPDX-License-Identifier: Apache-2.0
"""Whether observations arrive as often as the contract says."""

from __future__ import annotations

LATE = 1.1  # measured period over the contract's; later observations cost speed
WINDOW_S = 1.0
WINDOW_PERIODS = 10
WINDOWS = 5  # in a row, so that jitter and single gaps do not count


class ObservationRate:
    """Compares the mean period of observations with the control period. It knows no clock.

    Attributes:
        measured_s: mean period of the last window; 0 before the first one is full.

    Args:
        period_s: of the control; infinite where it is unknown.
    """

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self.reset()

    def reset(self) -> None:
        """Begin again: the robot becomes active, or there was a silence."""
        self.measured_s = 0.0
        self._since_s: float | None = None
        self._count = self._late = 0

    def observed(self, now_s: float) -> bool:
        """Take an observation; return whether observations are late from this one on."""
        if self._since_s is None:
            self._since_s = now_s
            return False
        self._count += 1
        passed_s = now_s - self._since_s
        if passed_s < max(WINDOW_S, WINDOW_PERIODS * self._period_s):
            return False
        self.measured_s = passed_s / self._count
        self._late = self._late + 1 if self.measured_s > LATE * self._period_s else 0
        self._since_s, self._count = now_s, 0
        return self._late == WINDOWS

    @property
    def fault(self) -> str:
        """How late observations are, for people; empty where they are not."""
        if self._late < WINDOWS:
            return ""
        return (
            f"observations are late: every {self.measured_s:.3g} s, the contract's control period is "
            f"{self._period_s:.3g} s; the arm moves slower than the policy wants"
        )

# SPDX-License-Identifier: Apache-2.0
"""When a server that failed is asked again."""

from __future__ import annotations

FIRST_S = 0.1
LONGEST_S = 5.0


class BackOff:
    """A pause after each failure in a row, each twice as long as the one before."""

    def __init__(self) -> None:
        self._pause_s = 0.0
        self._until_s = 0.0

    def left_s(self, now_s: float) -> float:
        """Return how long is still to be waited, 0 where nothing is."""
        return max(0.0, self._until_s - now_s)

    def failed(self, now_s: float) -> None:
        """Begin the next pause."""
        self._pause_s = min(LONGEST_S, 2.0 * self._pause_s) or FIRST_S
        self._until_s = now_s + self._pause_s

    def succeeded(self) -> None:
        """The next failure is the first one again."""
        self._pause_s = self._until_s = 0.0

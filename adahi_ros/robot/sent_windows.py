# SPDX-License-Identifier: Apache-2.0
"""The robot's side of window updates: what need not be sent."""

from __future__ import annotations

from adahi_ros.protocol.window import WHOLE, WindowUpdate, WireWindow, window_digest


class SentWindows:
    """The robot's side: what the verifier has, and so need not be sent."""

    def __init__(self) -> None:
        self._base: WireWindow | None = None
        self._digest = WHOLE

    def forget(self) -> None:
        """Send the next window whole."""
        self._base = None

    def replied(self, window: WireWindow, kept: bool) -> None:
        """The verifier has replied about a window, and has it from now on, or has no room for this robot."""
        if not kept:
            self.forget()
            return
        self._base = window
        self._digest = window_digest(window.rows.digests(window.length), window.goal)

    def update(self, window: WireWindow) -> WindowUpdate:
        """Return the least that says a window."""
        base = self._base
        if base is not None:
            for count in range(window.length):
                if window.continues(base, count):
                    goal = b"" if window.goal == base.goal else window.goal
                    return WindowUpdate(self._digest, window.newest(count), goal)
        return WindowUpdate(WHOLE, window.rows, window.goal)

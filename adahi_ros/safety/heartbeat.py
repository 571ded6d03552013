# SPDX-License-Identifier: Apache-2.0
"""Notices that the client that runs a policy is gone, by the silence of its heartbeats.

It knows no clock: each method gets the time, on a clock that never jumps.
"""

from __future__ import annotations


class Heartbeat:
    """Judges whether heartbeats stay away, after a first heartbeat.

    A heartbeat just before `begin` counts too: a client that is killed as it activates the node sends no
    other.

    Args:
        timeout_s: a longer silence means that the client is gone; 0 for never.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._begun = False
        self._sent_s: float | None = None  # when the newest heartbeat was sent
        self._looked_s = 0.0

    def begin(self, now_s: float) -> None:
        """Judge from now on: the node acts."""
        self._begun, self._looked_s = True, now_s
        if self._sent_s is not None and now_s - self._sent_s > self._timeout_s:
            self._sent_s = None

    def end(self) -> None:
        """Judge no longer, and forget former heartbeats: the node does not act."""
        self._begun, self._sent_s = False, None

    def received(self, age_s: float, now_s: float) -> None:
        """Take in a heartbeat that is so old; one that is older than the timeout does not count.

        A negative age, of clocks that do not agree, is an age of 0.
        """
        sent_s = now_s - max(0.0, age_s)
        if now_s - sent_s > self._timeout_s:
            return
        self._sent_s = sent_s if self._sent_s is None else max(self._sent_s, sent_s)

    def silence_s(self, now_s: float, period_s: float) -> float | None:
        """Return how long heartbeats have stayed away, where that is longer than the timeout; else None.

        Args:
            now_s: the time.
            period_s: between two calls. A longer interval is no silence: this process did not receive
                messages either.
        """
        stalled_s, self._looked_s = now_s - self._looked_s - period_s, now_s
        if not self._begun or self._sent_s is None or self._timeout_s == 0.0:
            return None
        if stalled_s > 0.0:
            self._sent_s += stalled_s
        silent_s = now_s - self._sent_s
        return silent_s if silent_s > self._timeout_s else None

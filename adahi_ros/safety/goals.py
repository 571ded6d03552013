# SPDX-License-Identifier: Apache-2.0
"""Which goals a ROS action gets of what is commanded step by step."""

from __future__ import annotations

import math

TOLERANCE = 1e-3  # m or rad: a goal so close to the one before is the same
RETRY_S = 1.0  # after a goal that was refused
ANSWER_S = 2.0  # a goal without an answer for so long is asked for anew: who was to answer may be gone
SUPERSEDED_S = 0.2  # a driver that replaces its goal by a new one has ended the old one by then
CANCEL_ATTEMPTS = 5
CANCEL_ANSWER_S = 0.5  # a cancel request without an answer for so long has failed
CANCEL_RETRY_S = 0.1  # after a cancel request that failed


class Goals:
    """Turns a command of every control step into few goals: a new one where another position is wanted.

    One goal is asked for at a time, and what is wanted meanwhile waits. It knows no clock: whoever asks says
    what time it is, on a clock that never jumps.

    Attributes:
        asked: how many goals were sent, so also the number of the newest.
    """

    def __init__(self) -> None:
        self.asked = 0
        self._wanted: float | None = None
        self._sent: float | None = None
        self._answer_s: float | None = None  # when the answer is overdue; None where none is awaited
        self._retry_s = 0.0

    def want(self, position: float, now_s: float) -> float | None:
        """Want a position; return the goal to send now, None for none."""
        self._wanted = position
        return self._due(now_s)

    def answered(self, number: int, accepted: bool, now_s: float) -> float | None:
        """Take note of the answer to the goal of a number; return the one to send now, None for none.

        An answer that comes after the goal was asked for anew says nothing.
        """
        if number != self.asked:
            return None
        self._answer_s = None
        if not accepted:
            self._sent = None
            self._retry_s = now_s + RETRY_S
        return self._due(now_s)

    def lost(self) -> None:
        """Who had the goals is gone: whoever comes after knows of none, and answers none."""
        self._sent = self._answer_s = None

    def hold(self) -> None:
        """Want nothing any more: what is under way is to be cancelled."""
        self._wanted = self._sent = None

    @property
    def held(self) -> bool:
        """Whether nothing is wanted."""
        return self._wanted is None

    def _due(self, now_s: float) -> float | None:
        if self._answer_s is not None and now_s >= self._answer_s:
            self.lost()
        if self._answer_s is not None or self._wanted is None or now_s < self._retry_s:
            return None
        if self._sent is not None and abs(self._wanted - self._sent) <= TOLERANCE:
            return None
        self.asked += 1
        self._answer_s = now_s + ANSWER_S
        self._sent = self._wanted
        return self._wanted


class Cancel:
    """Decides when to send the cancel request of one goal. It knows no clock, as `Goals` does not.

    Attributes:
        confirmed: the server cancels the goal, or the goal is over.
        failures: how many requests were refused or had no answer in time.
    """

    def __init__(self) -> None:
        self.confirmed = False
        self.failures = 0
        self._left = 0
        self._due_s = math.inf
        self._awaited = False

    def want(self, at_s: float) -> None:
        """Cancel the goal from a time on, with a fresh number of attempts."""
        self._left = CANCEL_ATTEMPTS
        if not self._awaited:
            self._due_s = min(self._due_s, at_s)

    @property
    def wanted(self) -> bool:
        """Whether `want` was ever called."""
        return self._due_s < math.inf

    def due(self, now_s: float) -> bool:
        """Return whether to send a request now."""
        if self.confirmed or now_s < self._due_s:
            return False
        if self._awaited:
            self.answered(False, now_s)
        if self._left == 0 or now_s < self._due_s:
            return False
        self._left -= 1
        self._awaited = True
        self._due_s = now_s + CANCEL_ANSWER_S
        return True

    def answered(self, confirmed: bool, now_s: float) -> None:
        """Take note of an answer: the server cancels the goal, or refuses."""
        self.confirmed |= confirmed
        if not confirmed:
            self.failures += 1
            self._awaited = False
            self._due_s = now_s + CANCEL_RETRY_S

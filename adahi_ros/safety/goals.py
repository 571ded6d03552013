# SPDX-License-Identifier: Apache-2.0
"""Goals of a ROS action from commands of every control step."""

from __future__ import annotations

import math

TOLERANCE = 1e-3  # m or rad: closer goals count as the same
RETRY_S = 1.0  # after a goal that was refused
ANSWER_S = 2.0  # a goal without an answer for this time is sent again: its server may be gone
SUPERSEDED_S = 0.2  # by then, a driver that replaces its goal has ended the old one
CANCEL_QUICKLY = 5  # requests
CANCEL_ANSWER_S = 0.5  # a cancel request without an answer for this time has failed
CANCEL_RETRY_S = 0.1  # after a cancel request that failed
CANCEL_SLOWLY_S = 1.0  # after further ones


class Goals:
    """Turns a command of every control step into few goals: a new one for another position.

    One goal is requested at a time, and later positions wait. It has no clock: the caller passes
    the time, of a clock that never jumps.

    Attributes:
        newest: number of sent goals, which is also the number of the newest.
    """

    def __init__(self) -> None:
        self.newest = 0
        self._wanted: float | None = None
        self._sent: float | None = None
        self._answer_s: float | None = None  # when the answer is overdue; None if none is awaited
        self._retry_s = 0.0
        self._held_at = 0  # number of the newest goal at the newest hold

    def want(self, position: float, now_s: float) -> float | None:
        """Set the wanted position; return the goal to send now, None for none."""
        self._wanted = position
        return self._goal_to_send(now_s)

    def answered(self, number: int, accepted: bool, now_s: float) -> float | None:
        """Process the answer to the goal of a number; return the one to send now, None for none.

        An answer to a goal that was sent again is ignored. After one from before a hold, the next position
        is sent with the next command: a driver that is busy with a new goal would read the cancel too late.
        """
        if number != self.newest:
            return None
        self._answer_s = None
        if not accepted:
            self._sent = None
            self._retry_s = now_s + RETRY_S
        return None if self.outdated(number) else self._goal_to_send(now_s)

    def lost(self) -> None:
        """Forget all goals: the server is gone, and a new server knows none of them."""
        self._sent = self._answer_s = None

    def hold(self) -> None:
        """Want no position any more: the present goal is to be cancelled."""
        self._wanted = self._sent = None
        self._held_at = self.newest

    def outdated(self, number: int) -> bool:
        """Return whether a goal must not go on: one from before a hold, or before a newer goal."""
        return number <= self._held_at or number != self.newest

    @property
    def held(self) -> bool:
        """Whether no position is wanted."""
        return self._wanted is None

    def _goal_to_send(self, now_s: float) -> float | None:
        if self._answer_s is not None and now_s >= self._answer_s:
            self.lost()
        if self._answer_s is not None or self._wanted is None or now_s < self._retry_s:
            return None
        if self._sent is not None and abs(self._wanted - self._sent) <= TOLERANCE:
            return None
        self.newest += 1
        self._answer_s = now_s + ANSWER_S
        self._sent = self._wanted
        return self._wanted


class Cancel:
    """Decides when to send the cancel request of one goal. It has no clock, like `Goals`.

    It never gives up: a driver that refuses may cancel later.

    Attributes:
        confirmed: the server cancels the goal, or the goal is over.
        failures: number of requests that were refused or not answered in time.
    """

    def __init__(self) -> None:
        self.confirmed = False
        self.failures = 0
        self._due_s = math.inf
        self._awaited = False

    def want(self, at_s: float) -> None:
        """Cancel the goal from a time on."""
        if not self._awaited:
            self._due_s = min(self._due_s, at_s)

    @property
    def wanted(self) -> bool:
        """Whether `want` was ever called."""
        return self._due_s < math.inf

    def sends_now(self, now_s: float) -> bool:
        """Return whether to send a request now."""
        if self.confirmed or now_s < self._due_s:
            return False
        if self._awaited:
            self.answered(False, now_s)
        if now_s < self._due_s:
            return False
        self._awaited = True
        self._due_s = now_s + CANCEL_ANSWER_S
        return True

    def answered(self, confirmed: bool, now_s: float) -> None:
        """Process an answer: the server cancels the goal, or refuses."""
        self.confirmed |= confirmed
        if not confirmed:
            self.failures += 1
            self._awaited = False
            self._due_s = now_s + (CANCEL_RETRY_S if self.failures < CANCEL_QUICKLY else CANCEL_SLOWLY_S)

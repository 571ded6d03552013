"""Which goals a ROS action gets of what is commanded step by step."""

from __future__ import annotations

TOLERANCE = 1e-3  # m or rad: a goal so close to the one before is the same
RETRY_S = 1.0  # after a goal that was refused
ANSWER_S = 2.0  # without an answer a goal is lost, and asked for again


class Goals:
    """Turns a command of every control step into few goals: a new one where another position is wanted.

    One goal is asked for at a time, and what is wanted meanwhile waits. Positions are in m or rad. It knows
    no clock: whoever asks says what time it is, on a clock that never jumps.
    """

    def __init__(self) -> None:
        self._wanted: float | None = None
        self._sent: float | None = None
        self._asking = False
        self._asked_s = self._retry_s = 0.0

    def want(self, position: float, now_s: float) -> float | None:
        """Want a position; return the goal to send now, None for none."""
        self._wanted = position
        return self._due(now_s)

    def answered(self, accepted: bool, now_s: float) -> float | None:
        """Take note of the answer to the goal that was sent; return the one to send now, None for none."""
        self._asking = False
        if not accepted:
            self._sent = None
            self._retry_s = now_s + RETRY_S
        return self._due(now_s)

    def hold(self) -> None:
        """Want nothing any more: what is under way is to be cancelled."""
        self._wanted = self._sent = None

    @property
    def held(self) -> bool:
        """Whether nothing is wanted."""
        return self._wanted is None

    def _due(self, now_s: float) -> float | None:
        if self._asking and now_s - self._asked_s >= ANSWER_S:  # whoever was asked is gone
            self._asking, self._sent = False, None
        if self._asking or self._wanted is None or now_s < self._retry_s:
            return None
        if self._sent is not None and abs(self._wanted - self._sent) <= TOLERANCE:
            return None
        self._asking, self._asked_s = True, now_s
        self._sent = self._wanted
        return self._wanted

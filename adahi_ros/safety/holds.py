# SPDX-License-Identifier: Apache-2.0
"""What holds the arm, as one table: each hold, each event, and the state of the hold after it.

The arm may move only while every hold is clear. A hold brakes the arm to rest, and never starts a motion.
`docs/explanation/stopping.md` describes this table; a test compares both. It has no clock and no ROS.
"""

from __future__ import annotations

from enum import Enum, auto

from adahi_ros.safety.intervention import Intervention


class Hold(Enum):
    """Reasons why nothing may move the arm, the first one first in reports."""

    DEACTIVATED = "the node is not active"
    SHARED = "another program commands the arm"
    MEASURED = "the measured positions cannot be right"
    DRIVER = "the driver does not run"
    FOLLOWING = "the arm does not follow its commands"
    STOPPED = "a stop is latched"
    STARTED = "the node has started"
    DISABLED = "the deadman is not pressed"
    TAKEN = "a person has the arm"  # holds the policy; the person's commands pass
    STALE = "there is no new observation"


class State(Enum):
    """State of a hold."""

    CLEAR = "clear"
    GRANTED = "clear, because the service allows it"
    WAITS = "held until the cause ends"
    LASTS = "held until the cause ends and a fresh press follows"
    PRESS = "held until a fresh press"


class Event(Enum):
    """What changes a hold."""

    ACTIVATE = auto()
    DEACTIVATE = auto()
    TRUE = auto()  # on `enable`, not too old
    FIRST_TRUE = auto()  # of a new publisher, the only one, while nothing but the start holds the arm
    FALSE = auto()  # on `enable`
    PRESS = auto()  # a fresh press, after TRUE
    SILENCE = auto()  # on `enable`, for `safety.enable_timeout_s`
    ENABLE = auto()  # `~/set_enabled` with true
    DISABLE = auto()  # `~/set_enabled` with false
    TAKE = auto()  # true on `takeover`
    GIVE = auto()  # false on `takeover`, of the one who took over
    LAGS = auto()  # following error
    JUMPS = auto()  # a measured position changes faster than the arm can
    DRIVER_UNKNOWN = auto()  # no message yet
    DRIVER_FAULT = auto()
    DRIVER_RUNS = auto()
    COMMANDED_TWICE = auto()  # another publisher on the command topic
    COMMANDED_ALONE = auto()
    MEASURED_TWICE = auto()  # two publishers measure one joint
    MEASURED_ONCE = auto()
    OBSERVED = auto()
    NOT_OBSERVED = auto()  # for `safety.hold_after_s`


_FREE = (State.CLEAR, State.GRANTED)
_ANY = tuple(State)
_ALLOWED = (Event.PRESS, Event.ENABLE)  # the operator allows motion afresh

TABLE: dict[Hold, tuple[tuple[tuple[Event, ...], tuple[State, ...], State], ...]] = {
    # Hold: (events, states before, state after); no row, no change
    Hold.DEACTIVATED: (
        ((Event.ACTIVATE,), _ANY, State.CLEAR),
        ((Event.DEACTIVATE,), _ANY, State.WAITS),
    ),
    Hold.SHARED: (
        ((Event.COMMANDED_TWICE,), _ANY, State.LASTS),
        ((Event.COMMANDED_ALONE,), (State.LASTS,), State.PRESS),
        (_ALLOWED, (State.PRESS,), State.CLEAR),
    ),
    Hold.MEASURED: (
        ((Event.MEASURED_TWICE,), _ANY, State.LASTS),
        ((Event.JUMPS,), (*_FREE, State.PRESS), State.PRESS),
        ((Event.MEASURED_ONCE,), (State.LASTS,), State.PRESS),
        (_ALLOWED, (State.PRESS,), State.CLEAR),
    ),
    Hold.DRIVER: (
        ((Event.DRIVER_UNKNOWN,), _FREE, State.WAITS),
        ((Event.ACTIVATE,), (State.WAITS,), State.LASTS),
        ((Event.DRIVER_FAULT,), _ANY, State.LASTS),
        ((Event.DRIVER_RUNS,), (State.WAITS,), State.CLEAR),
        ((Event.DRIVER_RUNS,), (State.LASTS,), State.PRESS),
        (_ALLOWED, (State.PRESS,), State.CLEAR),
    ),
    Hold.FOLLOWING: (
        ((Event.LAGS,), _ANY, State.PRESS),
        (_ALLOWED, (State.PRESS,), State.CLEAR),
    ),
    Hold.STOPPED: (
        ((Event.FALSE, Event.DISABLE), _ANY, State.PRESS),
        (_ALLOWED, (State.PRESS,), State.CLEAR),
    ),
    Hold.STARTED: (  # begins as PRESS; counts with `safety.require_enable` alone
        ((*_ALLOWED, Event.FIRST_TRUE), (State.PRESS,), State.CLEAR),
    ),
    Hold.DISABLED: (  # begins as WAITS; counts with `safety.require_enable` alone
        ((Event.TRUE,), _ANY, State.CLEAR),
        ((Event.ENABLE,), _ANY, State.GRANTED),
        ((Event.SILENCE,), (State.CLEAR,), State.WAITS),
        ((Event.ACTIVATE,), (State.GRANTED,), State.WAITS),
        ((Event.FALSE, Event.DISABLE), _ANY, State.WAITS),
    ),
    Hold.TAKEN: (
        ((Event.TAKE,), _ANY, State.WAITS),
        ((Event.GIVE,), _ANY, State.CLEAR),
    ),
    Hold.STALE: (
        ((Event.NOT_OBSERVED,), _ANY, State.WAITS),
        ((Event.OBSERVED, Event.ACTIVATE), _ANY, State.CLEAR),
    ),
}
FIRST = {  # when the node starts; all others are clear
    Hold.DEACTIVATED: State.WAITS,
    Hold.STARTED: State.PRESS,
    Hold.DISABLED: State.WAITS,
}
WITH_DEADMAN = frozenset((Hold.STARTED, Hold.DISABLED))  # only where one is required

REPORTED_AS = {
    Hold.DEACTIVATED: Intervention.DEACTIVATED,
    Hold.SHARED: Intervention.SHARED,
    Hold.MEASURED: Intervention.MEASURED,
    Hold.DRIVER: Intervention.DRIVER,
    Hold.FOLLOWING: Intervention.FOLLOWING,
    Hold.STOPPED: Intervention.DISABLED,
    Hold.STARTED: Intervention.DISABLED,
    Hold.DISABLED: Intervention.DISABLED,
    Hold.TAKEN: Intervention.TAKEOVER,
    Hold.STALE: Intervention.STALE,
}


class Holds:
    """The state of every hold. It belongs to the robot's node, and outlasts every transition and policy."""

    def __init__(self) -> None:
        self._states = {hold: FIRST.get(hold, State.CLEAR) for hold in Hold}
        self._texts: dict[Hold, str] = {}

    def __getitem__(self, hold: Hold) -> State:
        """Return the state of a hold."""
        return self._states[hold]

    def happen(self, event: Event, text: str = "") -> None:
        """Change every hold that an event changes.

        Args:
            event: that has happened.
            text: for people, about what is held now.
        """
        for hold, rows in TABLE.items():
            for events, before, after in rows:
                if event in events and self._states[hold] in before:
                    self._states[hold] = after
                    if after in _FREE:
                        self._texts.pop(hold, None)
                    elif text:
                        self._texts[hold] = text
                    break

    def holding(self, required: bool, person: bool = False) -> Hold | None:
        """Return the first hold that keeps the arm from moving; None if it may move.

        Args:
            required: the deadman counts.
            person: for the commands of a person who has taken over.
        """
        for hold, state in self._states.items():
            if state in _FREE or (hold in WITH_DEADMAN and not required):
                continue
            if hold is Hold.TAKEN and person:
                continue
            return hold
        return None

    def text(self, hold: Hold) -> str:
        """Return what is known about a hold, for people; may be empty."""
        return self._texts.get(hold, "")

    def needs_press(self, required: bool) -> bool:
        """Whether motion needs a fresh press, apart from a latched stop."""
        return any(
            state in (State.PRESS, State.LASTS) and hold is not Hold.STOPPED
            for hold, state in self._states.items()
            if required or hold not in WITH_DEADMAN
        )

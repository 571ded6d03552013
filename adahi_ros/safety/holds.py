# SPDX-License-Identifier: Apache-2.0
"""What holds the arm, as one table: each hold, each event, and the state of the hold after it.

The arm may move only while every hold is clear. A hold brakes the arm to rest, and never starts a motion.
`docs/explanation/stopping.md` describes this table; a test compares both. It has no clock and no ROS.
"""

from __future__ import annotations

from collections.abc import Container
from enum import Enum

from adahi_ros.safety.intervention import Intervention


class Hold(Enum):
    """Reasons why nothing may move the arm, the first one first in reports."""

    DEACTIVATED = "node not active"
    SHARED = "another commander"
    MEASURED = "two measurements"
    JUMPED = "impossible measurement"
    UNLIKE = "another unit or order"  # holds the policy; a person's commands pass
    DRIVER = "driver"
    FOLLOWING = "following error"
    STOPPED = "latched stop"
    STARTED = "node's start"
    DISABLED = "deadman"
    TAKEN = "person"  # holds the policy; the person's commands pass
    STALE = "no observation"


class State(Enum):
    """State of a hold."""

    CLEAR = "clear"
    GRANTED = "clear, because the service allows it"
    WAITS = "held until the cause ends"
    LASTS = "held until the cause ends and a fresh press follows"
    PRESS = "held until a fresh press"


class Event(Enum):
    """What changes a hold, in the words of the page on stopping."""

    STARTS = "the node starts"
    ACTIVATE = "the node is activated"
    DEACTIVATE = "the node is deactivated, cleaned up or ends"
    TRUE = "a `true` on `enable`"
    FIRST_TRUE = "a new publisher's first `true` on `enable`"
    FALSE = "a `false` on `enable`"
    PRESS = "a fresh press"
    AGAIN = "a `true` after silence"
    SILENCE = "no `true` on `enable` for `safety.enable_timeout_s`"
    ENABLE = "`~/set_enabled` with `true`"
    DISABLE = "`~/set_enabled` with `false`"
    TAKE = "a `true` on `takeover`"
    GIVE = "a `false` on `takeover` of the publisher that took over, or `~/give_back`"
    LAGS = "commanded and measured positions differ by more than `following` for 0.5 s and three steps"
    JUMPS = (
        "a measured position jumps by more than `max_step` and three times the velocity limit, or by more "
        "than `max_step` during a hold"
    )
    STEADY = "0.5 s without a jump"
    UNLIKE = (
        "an observation before the first motion, or after a jump or a driver's fault, is unlike what the "
        "target learnt from, as in another unit or with swapped joints"
    )
    LIKE = "an observation that is like it"
    DRIVER_UNKNOWN = "the driver's first message is missing, or nothing subscribes to a command topic"
    DRIVER_FOUND = "what was missing of the driver arrives, and it runs, while the node is active"
    DRIVER_FAULT = (
        "the driver reports another state than running, is silent or ends, or another program publishes "
        "its state; while the node is active or brakes, a controller ends, starts in motion, is silent, is "
        "slow, lacks a joint or has another time"
    )
    DRIVER_RUNS = "the driver runs"
    COMMANDED_TWICE = "another program publishes on the command topic, or has a goal on its controller"
    COMMANDED_ALONE = "no other program does"
    MEASURED_TWICE = "two programs publish the state of one commanded joint"
    MEASURED_ONCE = "one program publishes it"
    OBSERVED = "an observation"
    NOT_OBSERVED = "no observation for `safety.hold_after_s`"


FREE = (State.CLEAR, State.GRANTED)
_ANY = tuple(State)
_ALLOWED = (Event.PRESS, Event.AGAIN, Event.ENABLE)  # the operator allows motion afresh

TABLE: dict[Hold, tuple[tuple[tuple[Event, ...], tuple[State, ...], State], ...]] = {
    # Hold: (events, states before, state after); no row, no change
    Hold.DEACTIVATED: (
        ((Event.STARTS,), _ANY, State.WAITS),
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
        ((Event.MEASURED_ONCE,), (State.LASTS,), State.PRESS),
        (_ALLOWED, (State.PRESS,), State.CLEAR),
    ),
    Hold.JUMPED: (
        ((Event.JUMPS,), _ANY, State.LASTS),
        ((Event.STEADY,), (State.LASTS,), State.PRESS),
        (_ALLOWED, (State.PRESS,), State.CLEAR),
    ),
    Hold.UNLIKE: (
        ((Event.UNLIKE,), _ANY, State.LASTS),
        ((Event.LIKE,), (State.LASTS,), State.PRESS),
        (_ALLOWED, (State.PRESS,), State.CLEAR),
    ),
    Hold.DRIVER: (
        ((Event.DRIVER_UNKNOWN,), FREE, State.WAITS),
        ((Event.DRIVER_UNKNOWN,), (State.PRESS,), State.LASTS),
        ((Event.DRIVER_FAULT,), _ANY, State.LASTS),
        ((Event.DRIVER_FOUND, Event.DRIVER_RUNS), (State.WAITS,), State.CLEAR),
        ((Event.DRIVER_RUNS,), (State.LASTS,), State.PRESS),
        (_ALLOWED, (State.PRESS,), State.CLEAR),
    ),
    Hold.FOLLOWING: (
        ((Event.LAGS,), _ANY, State.PRESS),
        (_ALLOWED, (State.PRESS,), State.CLEAR),
    ),
    Hold.STOPPED: (
        ((Event.FALSE, Event.DISABLE), _ANY, State.PRESS),
        ((Event.PRESS, Event.ENABLE), (State.PRESS,), State.CLEAR),
    ),
    Hold.STARTED: (
        ((Event.STARTS, Event.DRIVER_FOUND), _ANY, State.PRESS),
        ((*_ALLOWED, Event.FIRST_TRUE), (State.PRESS,), State.CLEAR),
    ),
    Hold.DISABLED: (
        ((Event.STARTS,), _ANY, State.WAITS),
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
WITH_DEADMAN = frozenset((Hold.STARTED, Hold.DISABLED))  # count only with `safety.require_enable`

REPORTED_AS = {
    Hold.DEACTIVATED: Intervention.DEACTIVATED,
    Hold.SHARED: Intervention.SHARED,
    Hold.MEASURED: Intervention.MEASURED,
    Hold.JUMPED: Intervention.MEASURED,
    Hold.UNLIKE: Intervention.MEASURED,
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
        self._states = dict.fromkeys(Hold, State.CLEAR)
        self._texts: dict[Hold, str] = {}
        self.happen(Event.STARTS)

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
                    if after in FREE:
                        self._texts.pop(hold, None)
                    elif text:
                        self._texts[hold] = text
                    break

    def holding(self, ignored: Container[Hold]) -> Hold | None:
        """Return the first hold that keeps the arm from moving; None if it may move.

        Args:
            ignored: holds that do not count.
        """
        for hold, state in self._states.items():
            if state not in FREE and hold not in ignored:
                return hold
        return None

    def text(self, hold: Hold) -> str:
        """Return what is known about a hold and ends it, for people; may be empty."""
        ends = "press enable afresh" if self._states[hold] is State.PRESS else ""
        return "; ".join(filter(None, (self._texts.get(hold, ""), ends)))

    def needs_press(self, ignored: Container[Hold]) -> bool:
        """Whether motion needs a fresh press, apart from a latched stop; arguments as `holding`."""
        return any(
            state in (State.LASTS, State.PRESS) and hold is not Hold.STOPPED and hold not in ignored
            for hold, state in self._states.items()
        )

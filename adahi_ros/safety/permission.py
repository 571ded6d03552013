# SPDX-License-Identifier: Apache-2.0
"""The operator's permission to move: the deadman on `enable`, stops, fresh presses, and takeovers.

It has no clock. Ages and stamps are from the source timestamp of each message, by the publisher's own clock:
a node that was stopped for seconds must not take an old `true` for a new one.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from adahi_ros.safety.holds import WITH_DEADMAN, Event, Hold, Holds, State
from adahi_ros.safety.sole_publisher import SolePublisher
from adahi_ros.safety.takeover import Takeover, lateness

OTHERS = frozenset((Hold.DEACTIVATED, Hold.TAKEN, Hold.STALE))  # holds that the operator does not end
COPIES = 64
SILENCES = 2.0  # of `timeout_s`: a deadman that is silent for so long was released
SILENCE_S = 1.0  # at least
LONGEST_WAIT_S = 10.0  # of a call that activates the node
SERVICE_NEEDED = "only ~/set_enabled with true lets the arm move"


@dataclass(frozen=True)
class Press:
    """One message on `enable`.

    Attributes:
        value: true while the deadman is pressed.
        stamp_s: when it was published, by the publisher's clock; None if unknown.
        age_s: since then, by this machine's clock; negative where the clocks disagree.
        sequence: the publisher counts its messages from 1; None if unknown.
        waited_s: since this machine received it, because the node was busy or suspended.
    """

    value: bool
    stamp_s: float | None
    age_s: float
    sequence: int | None
    waited_s: float = 0.0


class Permission:
    """Decides whether the robot may move, as far as its operator is concerned.

    It belongs to the node, not to a configuration: what the operator has said outlasts cleanup and configure.

    - A `false` on the topic or by the service is a latched stop.
    - A fresh press is the `true` of a publisher directly after its own `false`. One GID must have been alone
      on the topic from then to the `true`, and from the first of the latched stops as well. Sequence
      numbers only rule presses out.
    - A fresh press ends stops, and the holds that wait for one; the service does so, too. A `true` after
      silence of twice `timeout_s` and a second, by the publisher's clock and this machine's, is a press that
      ends no stop.
    - The first `true` of a new publisher ends only the hold of the node's start, and only if nothing else
      holds the arm and no other publisher is on the topic.
    - The service enables without a deadman, until a `true` arrives: then the deadman counts again.
    - A `true` that is older than `timeout_s` enables nothing, on the topic or by the service. The same holds
      for a call that was sent before the newest stop, and a `true` that was sent before it is no press.

    Attributes:
        holds: of the arm.
        takeover: by a person.
        publishers: on `enable`.
        presses: how often the operator allowed motion afresh.
        uncompared: an observation is to be compared with the target's data again.

    Args:
        required: the robot moves only while it is enabled.
        timeout_s: how long a `true` lasts.
    """

    def __init__(self, required: bool, timeout_s: float) -> None:
        self.holds = Holds()
        self.publishers = SolePublisher()
        self.takeover = Takeover(self.holds, timeout_s)
        self._last: tuple[Press, float, float] | None = None  # the newest message, its arrival, and its turn
        self._false_stamps: deque[float | None] = deque(maxlen=COPIES)  # their copies may come later
        self._first_stop_s = math.inf  # when the first of the latched stops arrived
        self._last_stop_s = -math.inf
        self._active_since_s = -math.inf
        self._true_until_s = -math.inf
        self._parts: dict[str, tuple[str, bool]] = {}  # of the driver: fault, and whether it is known
        self.presses, self.uncompared = 0, True
        self.configure(required, timeout_s)

    def configure(self, required: bool, timeout_s: float) -> None:
        """Take new parameters; what the operator has said remains."""
        self._ignored = frozenset() if required else WITH_DEADMAN
        self._true_until_s -= max(0.0, self.takeover.timeout_s - timeout_s)
        self.takeover.configure(timeout_s)
        self._timeout_s = timeout_s

    def activate(self, now_s: float) -> None:
        """Note that the node is active; the service grants nothing that was sent before."""
        self._active_since_s = now_s
        self.holds.happen(Event.ACTIVATE)

    @property
    def stopped(self) -> bool:
        """Whether a stop is latched."""
        return self.holds[Hold.STOPPED] is State.PRESS

    @property
    def needs_press(self) -> bool:
        """Whether motion needs a fresh press, apart from a latched stop."""
        return self.holds.needs_press(ignored=self._ignored)

    def enabled(self, now_s: float) -> bool:
        """Whether the operator, and what waits for the operator, let the robot move."""
        return self.holding(now_s, OTHERS) is None

    def holding(self, now_s: float, ignored: frozenset[Hold] = frozenset()) -> Hold | None:
        """Return the first hold that keeps the arm from moving; None if it may move.

        Args:
            now_s: the time.
            ignored: holds that do not count.
        """
        if now_s >= self._true_until_s:
            self.holds.happen(Event.SILENCE)
        return self.holds.holding(self._ignored | ignored)

    def set_enabled(self, enabled: bool, now_s: float, age_s: float = 0.0) -> str:
        """Enable the robot until it is disabled, or stop it, as the service requests.

        Args:
            enabled: the requested value.
            now_s: the time.
            age_s: of the request by its source timestamp; 0 where that is unknown.

        Returns:
            Why the request is ignored; empty where it is not.
        """
        if not enabled:
            sent_s = now_s - max(0.0, age_s)
            self._stop(Event.DISABLE, sent_s, sent_s)  # only its sending is known
            return ""
        if late := lateness(age_s, self._timeout_s):
            return f"set_enabled: a true that is {late}; the clocks of operator and robot must agree"
        if age_s > 0.0 and now_s - age_s < self._last_stop_s:
            return "set_enabled: sent before the stop, which needs a newer true"
        if age_s > 0.0 and now_s - age_s < self._active_since_s:
            return "set_enabled: sent before the node was active, which takes no earlier true"
        self._allow(Event.ENABLE)
        return ""

    def used(self) -> None:
        """Note a `true` on `enable`, even an ignored one: it ends what the service granted."""
        if self.holds[Hold.DISABLED] is State.GRANTED:
            self.holds.happen(Event.TRUE)

    def receive(self, press: Press, now_s: float) -> str:
        """Process a message on `enable`, after `publishers` has looked.

        Returns:
            Why a `true` is ignored, or does not let the arm move; empty where it does.
        """
        arrived_s, sent_s = now_s - max(0.0, press.waited_s), now_s - max(0.0, press.age_s)
        last, self._last = self._last, (press, arrived_s, now_s)
        if not press.value:
            self._stop(Event.FALSE, arrived_s, sent_s)
            self._false_stamps.append(press.stamp_s)
            return ""
        self.used()
        if late := lateness(press.age_s, self._timeout_s):
            busy = press.waited_s > self._timeout_s / 2
            why = "the node was busy" if busy else "the clocks of operator and robot must agree"
            return f"enable: a true that is {late}; {why}"
        first = press.sequence == 1 and self._is_first(last, arrived_s, now_s)
        self.holds.happen(Event.TRUE)  # a used deadman counts: releasing it stops the arm
        self._true_until_s = max(self._true_until_s, sent_s + self._timeout_s)
        if last is not None and self._is_next(press, *last[:2]) and sent_s >= self._last_stop_s:
            before, before_s, turn_s = last
            between_s = min(arrived_s - before_s, now_s - turn_s)
            if not before.value and self._alone_from(self._first_stop_s):
                self._allow(Event.PRESS)
            elif not before.value or self._was_silent(press, before, between_s):
                self._allow(Event.AGAIN)
        elif first:
            self._allow(Event.FIRST_TRUE)
        return self._unanswered()

    def stop(self, press: Press, now_s: float) -> None:
        """Process a `false` on `enable` of a publisher that may lose messages, and so makes no press."""
        if press.stamp_s is None or press.stamp_s not in self._false_stamps:
            self._stop(Event.FALSE, now_s - max(0.0, press.waited_s), now_s - max(0.0, press.age_s))

    def driver(self, fault: str, known: bool = True, part: str = "driver") -> None:
        """Set the state of the driver, or of another part that drives the arm, such as its controllers.

        Args:
            fault: why it does not run; empty where it runs.
            known: there was a message of each monitor.
            part: that has this state; the others keep theirs.
        """
        self._parts[part] = fault, known
        fault, known = max(self._parts.values(), key=lambda each: (bool(each[0]), each[1]))
        if fault:
            self.uncompared = True
            self.holds.happen(Event.DRIVER_FAULT if known else Event.DRIVER_UNKNOWN, fault)
        elif self.holds[Hold.DEACTIVATED] is State.CLEAR and self.holds[Hold.DRIVER] is State.WAITS:
            self.holds.happen(Event.DRIVER_FOUND)
        else:
            self.holds.happen(Event.DRIVER_RUNS, f"it did not run: {self.holds.text(Hold.DRIVER)}")

    def compare(self, unlike: str) -> None:
        """Set what of an observation is unlike the target's training data; empty for nothing."""
        self.uncompared = False
        event, text = (Event.UNLIKE, unlike) if unlike else (Event.LIKE, "the observations were unlike it")
        self.holds.happen(event, text)

    def _stop(self, event: Event, arrived_s: float, sent_s: float) -> None:
        self.holds.happen(event)
        self._first_stop_s = min(self._first_stop_s, arrived_s)
        self._last_stop_s = max(self._last_stop_s, sent_s)

    def _allow(self, event: Event) -> None:
        """The operator allows motion afresh."""
        self.holds.happen(event)
        self.presses += 1
        if not self.stopped:
            self._first_stop_s = math.inf

    def _unanswered(self) -> str:
        """Return what an operator must do if a `true` does not let the arm move; empty where it does."""
        if not (self.stopped or self.needs_press):
            return ""
        if self.publishers.several:
            return f"enable: {self.publishers.several} publishers; {SERVICE_NEEDED}"
        if not self._alone_from(self._first_stop_s):
            return f"enable: its publisher was not the only one since the stop; {SERVICE_NEEDED}"
        hold = self.holds.holding(self._ignored | OTHERS)
        if hold is not None and self.holds[hold] is State.LASTS:
            return f"enable: held until this ends: {hold.value}: {self.holds.text(hold)}"
        return "enable: a fresh press is needed; release, then press"

    def _alone_from(self, time_s: float) -> bool:
        """Whether the only publisher has been the only one since a time."""
        return self.publishers.since_s <= time_s

    def _is_next(self, press: Press, before: Press, before_s: float) -> bool:
        """Whether a message is the next one of the publisher of the message before, which arrived then."""
        known = press.sequence is not None and before.sequence is not None
        # Else a message was lost, or another publisher sent this one.
        return self._alone_from(before_s) and (not known or press.sequence == (before.sequence or 0) + 1)

    def _was_silent(self, press: Press, before: Press, between_s: float) -> bool:
        """Whether the publisher was silent: either clock may jump, and this node may be suspended."""
        if None in (press.sequence, before.sequence) or press.stamp_s is None or before.stamp_s is None:
            return False
        silence_s = max(SILENCE_S, SILENCES * self._timeout_s)
        return min(press.stamp_s - before.stamp_s, between_s) >= silence_s

    def _is_first(self, last: tuple[Press, float, float] | None, arrived_s: float, now_s: float) -> bool:
        """Whether its only publisher is new, and nothing but the node's start holds the arm."""
        if self.holds[Hold.STARTED] is not State.PRESS:
            return False
        new = last is None or last[1] < self.publishers.since_s
        others = OTHERS | {Hold.STARTED, Hold.DISABLED}
        free = self.holding(now_s, others) is None and now_s >= self._true_until_s
        return new and free and self._alone_from(arrived_s)


class Heartbeat:
    """Judges whether heartbeats are missing, after a first heartbeat.

    A heartbeat just before the activation counts too: a client that is killed as it activates the node sends
    only that one. Silence counts from the end of the activation at the earliest.

    Args:
        timeout_s: a longer silence means that the client is gone; 0 for never.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._since_s = -math.inf  # heartbeats that arrived since then count
        self._began_s: float | None = None  # while the node acts
        self._received_s: float | None = None  # when the newest heartbeat arrived
        self._silent_s: float | None = None  # when a silence was seen first

    @property
    def judges(self) -> bool:
        """Whether the node acts."""
        return self._began_s is not None

    def begin(self, since_s: float, now_s: float) -> None:
        """Start judging: the node acts.

        Args:
            since_s: when its activation began; the call may have waited for `LONGEST_WAIT_S`.
            now_s: the time.
        """
        self._since_s, self._began_s = max(self._since_s, since_s - LONGEST_WAIT_S), now_s
        self._silent_s = None
        if self._received_s is not None and self._received_s < self._since_s:
            self._received_s = None

    def end(self, now_s: float) -> None:
        """Stop judging, and forget former heartbeats: the node does not act."""
        self._since_s, self._began_s, self._received_s = now_s, None, None

    def received(self, waited_s: float, now_s: float) -> None:
        """Process a heartbeat that arrived so long ago."""
        arrived_s = now_s - max(0.0, waited_s)
        if arrived_s >= self._since_s:
            self._received_s, self._silent_s = max(arrived_s, self._received_s or arrived_s), None

    def silence_s(self, now_s: float, period_s: float) -> float | None:
        """Return how long heartbeats have been missing, if longer than the timeout; else None.

        Args:
            now_s: the time.
            period_s: between two calls. A silence must last for so long after it was seen first: a node that
                stood still receives then what came meanwhile.
        """
        if self._began_s is None or self._received_s is None or self._timeout_s == 0.0:
            return None
        silent_s = now_s - max(self._received_s, self._began_s)
        if silent_s <= self._timeout_s:
            self._silent_s = None
            return None
        self._silent_s = now_s if self._silent_s is None else self._silent_s
        return silent_s if now_s - self._silent_s >= period_s else None

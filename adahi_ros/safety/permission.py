# SPDX-License-Identifier: Apache-2.0
"""The operator's permission to move: the deadman on `enable`, stops, and fresh presses.

It has no clock. Ages and stamps are from the source timestamp of each message, by the publisher's own clock:
a node that was stopped for seconds must not take an old `true` for a new one.
"""

from __future__ import annotations

from dataclasses import dataclass

SERVICE = -1  # the source of a stop by `~/set_enabled`
UNKNOWN = -2  # a publisher that cannot be distinguished from another
STREAMS_KEPT = 16
AMBIGUOUS = 20  # sequence numbers of two publishers that are closer than this cannot be distinguished
STOPPED_AMBIGUOUS = 1000  # likewise, for the end of a stop


@dataclass(frozen=True)
class Press:
    """One message on `enable`.

    Attributes:
        value: true while the deadman is pressed.
        stamp_s: when it was published, by the publisher's clock; None if unknown.
        age_s: since then, by this machine's clock; negative where the clocks disagree.
        sequence: the publisher counts its messages from 1; None if unknown.
        publishers: on the topic now.
    """

    value: bool
    stamp_s: float | None
    age_s: float
    sequence: int | None
    publishers: int


@dataclass
class _Stream:
    """The messages of one publisher."""

    sequence: int | None
    stamp_s: float | None
    value: bool
    received_s: float


class Permission:
    """Decides whether the robot may move.

    It belongs to the node, not to a configuration: a stop outlasts cleanup and configure.

    - A `false` of a publisher is a stop until the same publisher sends `true`.
    - A stop by the service lasts until the service enables, or until a fresh press.
    - A fresh press is the `true` of a publisher after its own `false` or its own silence of `timeout_s`. Both
      its clock and this machine's must show the silence: one may be set, or this process may be suspended.
      The first message of a new publisher is one if there is no stop, no alarm and no other `true`.
    - The service enables without a deadman, until a `true` arrives: then the deadman is in charge again.
    - The node's start, and a hold that `require_press` names, need a fresh press.
    - A `true` that is older than `timeout_s` enables nothing, on the topic or by the service. The same holds
      for a call that was sent before the newest stop.

    Middlewares give no identity of a publisher to Python, so sequence numbers distinguish publishers. Where
    they cannot, only the service ends a stop.

    Args:
        required: the robot moves only while it is enabled.
        timeout_s: how long a `true` lasts.
    """

    def __init__(self, required: bool, timeout_s: float) -> None:
        self._streams: dict[int, _Stream] = {}
        self._next_stream = 0
        self._stops: set[int] = set()
        self._stopped_s = -float("inf")  # when the newest stop was sent
        self._true_until_s = -float("inf")
        self._enabled_by_service = False
        self._alarm = False
        self._unpressed = True
        self.configure(required, timeout_s)

    def configure(self, required: bool, timeout_s: float) -> None:
        """Take new parameters; stops remain."""
        self._required, self._timeout_s = required, timeout_s

    def restart(self) -> None:
        """End the permission by the service: each activation needs the operator again. Stops remain."""
        self._enabled_by_service = False

    @property
    def stopped(self) -> bool:
        """Whether a stop is latched."""
        return bool(self._stops)

    @property
    def needs_press(self) -> bool:
        """Whether motion needs a fresh press."""
        return self._alarm or (self._required and self._unpressed)

    def enabled(self, now_s: float) -> bool:
        """Whether the robot may move."""
        if self._stops or self.needs_press:
            return False
        return not self._required or self._enabled_by_service or now_s < self._true_until_s

    def require_press(self) -> None:
        """End all permission until a fresh press."""
        self._alarm = True
        self._enabled_by_service = False

    def set_enabled(self, enabled: bool, now_s: float = 0.0, age_s: float = 0.0) -> str:
        """Enable the robot until it is disabled, or stop it, as the service requests.

        Args:
            enabled: the requested value.
            now_s: the time.
            age_s: of the request by its source timestamp; 0 where that is unknown.

        Returns:
            Why the request is ignored; empty where it is not.
        """
        if not enabled:
            self._stop(SERVICE, now_s, age_s)
            return ""
        if late := self._late(age_s):
            return f"set_enabled: {late}"
        if age_s > 0.0 and now_s - age_s < self._stopped_s:
            return "set_enabled: sent before the stop, which needs a newer true"
        self._enabled_by_service = True
        self._stops.clear()
        self._alarm = self._unpressed = False
        return ""

    def receive(self, press: Press, now_s: float) -> str:
        """Process a message on `enable`.

        Returns:
            Why a `true` is ignored; empty where it is not.
        """
        source, fresh = self._source_of(press, now_s)
        if not press.value:
            self._stop(source, now_s, press.age_s)
            return ""
        if late := self._late(press.age_s):
            return f"enable: {late}"
        if fresh and source != UNKNOWN:
            self._stops -= {source, SERVICE}
            self._alarm = self._unpressed = False
        self._enabled_by_service = False  # a used deadman takes control: releasing it stops the arm
        self._true_until_s = max(self._true_until_s, now_s - max(0.0, press.age_s) + self._timeout_s)
        return ""

    def _stop(self, source: int, now_s: float, age_s: float) -> None:
        self._stops.add(source)
        self._enabled_by_service = False
        self._stopped_s = max(self._stopped_s, now_s - max(0.0, age_s))

    def _late(self, age_s: float) -> str:
        """Return why a `true` of this age does not count; empty where it does."""
        if -self._timeout_s / 2 <= age_s <= self._timeout_s:
            return ""
        return (
            f"a true that is {age_s:.2f} s old by its source timestamp, allowed are "
            f"{-self._timeout_s / 2:g} to {self._timeout_s:g} s (safety.enable_timeout_s); the clocks of "
            "operator and robot must agree"
        )

    def _source_of(self, press: Press, now_s: float) -> tuple[int, bool]:
        """Return the publisher of a message, and whether it is a fresh press; store the message."""
        source = self._stream_of(press)
        stream = self._streams.get(source)
        if stream is None:
            # The start of a program is not a press: it ends no stop, and does not join another deadman.
            free = not self._stops and not self._alarm and now_s >= self._true_until_s
            first = press.sequence == 1 and free
        else:
            first = (
                self._follows(stream, press)
                and (not stream.value or self._was_silent(stream, press, now_s))
                and not self._may_continue_another(source, press, now_s)
            )
        self._streams[source] = _Stream(press.sequence, press.stamp_s, press.value, now_s)
        while len(self._streams) > STREAMS_KEPT:
            del self._streams[min(self._streams, key=lambda name: self._streams[name].received_s)]
        return source, press.value and first

    @staticmethod
    def _follows(stream: _Stream, press: Press) -> bool:
        """Whether a message is the very next of its publisher, so that none was lost."""
        return stream.sequence is None or press.sequence == stream.sequence + 1

    def _was_silent(self, stream: _Stream, press: Press, now_s: float) -> bool:
        """Whether the publisher was silent by both clocks: its own may jump, this node may be suspended."""
        if stream.stamp_s is None or press.stamp_s is None or press.sequence is None:
            return False
        return min(press.stamp_s - stream.stamp_s, now_s - stream.received_s) >= self._timeout_s

    def _may_continue_another(self, source: int, press: Press, now_s: float) -> bool:
        """Whether the message may be from another publisher that is pressed all the time."""
        return any(
            name != source
            and stream.value
            and not self._was_silent(stream, press, now_s)
            and self._near(press.sequence, stream)
            for name, stream in self._streams.items()
        )

    @staticmethod
    def _near(sequence: int | None, stream: _Stream) -> bool:
        """Whether a publisher may have reached this sequence number, with possible losses."""
        if sequence is None or stream.sequence is None:
            return True
        return 0 < sequence - stream.sequence <= STOPPED_AMBIGUOUS

    def _others_near(self, sequence: int, source: int) -> bool:
        """Whether another publisher may have reached this sequence number."""
        return any(name != source and self._near(sequence, each) for name, each in self._streams.items())

    def _stream_of(self, press: Press) -> int:
        if press.sequence is None:
            return UNKNOWN if press.publishers > 1 else 0
        furthest = AMBIGUOUS if press.publishers > 1 else float("inf")
        gaps = [  # of two publishers with equal numbers, the one received last
            (gap, name)
            for gap, _, name in sorted(
                (press.sequence - stream.sequence, -stream.received_s, name)
                for name, stream in self._streams.items()
                if stream.sequence is not None and 0 < press.sequence - stream.sequence <= furthest
            )
        ]
        if press.sequence == 1 or not gaps:
            self._next_stream += 1
            return self._next_stream
        if press.publishers > 1 and len(gaps) > 1:
            return UNKNOWN
        if gaps[0][1] in self._stops and self._others_near(press.sequence, gaps[0][1]):
            return UNKNOWN  # another publisher must not end a stop
        return gaps[0][1]


class Heartbeat:
    """Judges whether heartbeats are missing, after a first heartbeat.

    A heartbeat just before `begin` counts too: a client that is killed as it activates the node sends
    only that one.

    Args:
        timeout_s: a longer silence means that the client is gone; 0 for never.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._started = False
        self._sent_s: float | None = None  # when the newest heartbeat was sent
        self._looked_s = 0.0

    def begin(self, now_s: float) -> None:
        """Start judging: the node acts."""
        self._started, self._looked_s = True, now_s
        if self._sent_s is not None and now_s - self._sent_s > self._timeout_s:
            self._sent_s = None

    def end(self) -> None:
        """Stop judging, and forget former heartbeats: the node does not act."""
        self._started, self._sent_s = False, None

    def received(self, age_s: float, now_s: float) -> None:
        """Process a heartbeat of this age; one that is older than the timeout does not count.

        A negative age, of clocks that do not agree, is an age of 0.
        """
        sent_s = now_s - max(0.0, age_s)
        if now_s - sent_s > self._timeout_s:
            return
        self._sent_s = sent_s if self._sent_s is None else max(self._sent_s, sent_s)

    def silence_s(self, now_s: float, period_s: float) -> float | None:
        """Return how long heartbeats have been missing, if longer than the timeout; else None.

        Args:
            now_s: the time.
            period_s: between two calls. A longer interval does not count as silence: this process did not
                receive messages either.
        """
        stalled_s, self._looked_s = now_s - self._looked_s - period_s, now_s
        if not self._started or self._sent_s is None or self._timeout_s == 0.0:
            return None
        if stalled_s > 0.0:
            self._sent_s += stalled_s
        silent_s = now_s - self._sent_s
        return silent_s if silent_s > self._timeout_s else None

# SPDX-License-Identifier: Apache-2.0
"""One of several verifiers of a robot: its description, its windows, and how it has replied so far."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field, replace

from adahi_ros.protocol.description import Description
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import Reply, Request
from adahi_ros.protocol.window import WHOLE, SentWindows
from adahi_ros.robot.link_estimate import FIRST_S, Breaker, moved
from adahi_ros.robot.outcomes import Outcome
from adahi_ros.robot.transport import Transport

LATE = 0.95  # share of replies that are not late: Dean and Barroso's percentile
RECENT = 64  # round trips in the percentile
ENOUGH = 8  # fewest round trips for a percentile
PATIENCE, PATIENCE_LEAST_S = 3.0, 0.1  # a reply counts as missed after this multiple of the percentile
PATIENCE_FIRST_S = 1.0  # likewise, before there is a percentile
MISS_COSTS_S = 0.1  # added to the cost of a verifier that misses every reply
SOONEST_S = 1e-3  # smallest needed_in_s in a request
PROBES_OUT = 4  # a late reply to an old probe still shows that the verifier is back
UNDER_WAY_MOST = 32  # pending messages; beyond that the oldest is dropped


@dataclass
class VerifierTotals:
    """Counts of one of several verifiers.

    Attributes:
        requests: sent to this verifier.
        hedges: of them, those that another verifier got before.
        answers: executed, or added to the plan.
        spare: good replies that came after another verifier's, or when they were not needed any more.
        refusals: replies without an answer; bad ones among them.
        misses: requests without a reply in the expected time.
        windows_resent: requests sent again with the whole window.
        bytes_up, bytes_down: serialized requests and replies.
    """

    requests: int = 0
    hedges: int = 0
    answers: int = 0
    spare: int = 0
    refusals: int = 0
    misses: int = 0
    windows_resent: int = 0
    bytes_up: int = 0
    bytes_down: int = 0


@dataclass(eq=False)
class Pending:
    """A request of the session, for any verifier.

    Attributes:
        request: its content.
        since_s: when it was first submitted.
        ids: the session's ids of it; empty when the session does not wait for it any more.
        hedge_s: when it goes to another verifier; infinite for never.
        sent_s: when it was last sent to each verifier, by name.
        refused: names of verifiers that refused it.
    """

    request: Request
    since_s: float
    ids: list[int] = field(default_factory=list)
    hedge_s: float = math.inf
    sent_s: dict[str, float] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)


@dataclass(eq=False)
class Message:
    """A request as sent to one verifier.

    Attributes:
        pending: the session's request.
        request: as it was sent.
        whole: the window was sent whole.
        sent_s: when it was sent.
        missed: it was counted as missed.
    """

    pending: Pending
    request: Request
    whole: bool
    sent_s: float
    missed: bool = False


@dataclass(eq=False)
class VerifierEndpoint:
    """A verifier as the robot knows it.

    Attributes:
        name: for people.
        transport: to this verifier.
        description: of its target; None before the first description, or if it cannot be read.
        trouble: why it gets no requests although it has described itself; for people.
        totals: counts of its requests and replies.
        breaker: open after several requests in a row without a reply.
        busy_until_s: when it accepts requests again, as it replied.
        under_way: requests without a reply, by the transport's ids, oldest first.
        probes: ids of pending requests for its description.
        describe_s: when to request its description again.
        was_described: it has described itself at least once.
        reported: why it is lost, as logged last; empty if it was not lost.
        reported_s: when that was logged.
        unknown_reported: the warning about unknown weights was logged.
        late_s: when a reply is later than usual: the 95th percentile of recent round trips.
        fault: of its last reply, if the robot refused that; for people.
    """

    name: str
    transport: Transport
    description: Description | None = None
    trouble: str = ""
    totals: VerifierTotals = field(default_factory=VerifierTotals)
    breaker: Breaker = field(default_factory=Breaker)
    busy_until_s: float = -math.inf
    under_way: dict[int, Message] = field(default_factory=dict)
    probes: list[int] = field(default_factory=list)
    describe_s: float = -math.inf
    was_described: bool = False
    reported: str = ""
    reported_s: float = -math.inf
    unknown_reported: bool = False
    late_s: float = FIRST_S
    fault: str = ""
    _windows: SentWindows = field(default_factory=SentWindows)
    _misses: float = math.nan
    _took_s: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _usual_s: float = math.inf

    @property
    def cost_s(self) -> float:
        """Median round trip plus the share of misses times their cost; infinite if unknown."""
        return self._usual_s + MISS_COSTS_S * self._misses if self.is_measured else math.inf

    @property
    def is_measured(self) -> bool:
        """Whether it has replied often enough for a percentile."""
        return len(self._took_s) >= ENOUGH

    @property
    def lost(self) -> str:
        """Reason why it is lost; empty if it is not, or was never there."""
        if not self.was_described:
            return ""
        if not self.transport.present:
            return "is gone"
        if self.fault:
            return f"sends bad replies: {self.fault}"
        return "does not reply" if self.breaker.open else ""

    def is_spared(self, now_s: float) -> bool:
        """Whether it gets no requests for now, because it does not reply or is busy."""
        return self.breaker.open or now_s < self.busy_until_s

    def forget(self) -> None:
        """Reset its state because it is gone: the next one has no windows and may serve another target."""
        self.description, self.trouble = None, ""
        self.busy_until_s = self.describe_s = -math.inf
        self.breaker.reset()
        self._windows.forget()
        self.forget_probes()  # a late reply would describe the former verifier

    # Description

    def probe(self, now_s: float, again_s: float) -> None:
        """Request its description; the next request is due after `again_s` unless it replies."""
        self.describe_s = now_s + again_s
        while len(self.probes) >= PROBES_OUT:
            self.transport.cancel(self.probes.pop(0))
        self.probes.append(self.transport.describe())

    def forget_probes(self) -> None:
        """Cancel all requests for its description."""
        while self.probes:
            self.transport.cancel(self.probes.pop())

    # Requests

    def send(self, pending: Pending, now_s: float) -> int:
        """Send it a request with the part of the window that it lacks; return the number of bytes."""
        request, waited_s = pending.request, now_s - pending.since_s
        if request.needed_in_s and waited_s:
            request = replace(request, needed_in_s=max(SOONEST_S, request.needed_in_s - waited_s))
        update = self._windows.update(request.window)
        sent = self.transport.submit(request, update)
        self.under_way[sent.id] = Message(pending, request, update.base == WHOLE, now_s)
        self.totals.requests += 1
        self.totals.hedges += bool(pending.sent_s) and self.name not in pending.sent_s
        self.totals.bytes_up += sent.size_bytes
        pending.sent_s[self.name] = now_s
        if len(self.under_way) > UNDER_WAY_MOST:
            self._drop(next(iter(self.under_way)), now_s)
        return sent.size_bytes

    def awaits_reply(self, pending: Pending) -> bool:
        """Whether it may still reply to this request."""
        return any(message.pending is pending for message in self.under_way.values())

    def lacks_window(self, reply: Reply) -> None:
        """Record that it does not have the base window."""
        self._windows.forget()
        self.totals.bytes_down += reply.size_bytes
        self.totals.windows_resent += 1

    def replied(self, message: Message, reply: Reply, outcome: Outcome, now_s: float) -> None:
        """Update the statistics from a reply, even if it is not needed any more.

        A bad reply counts as a missing one, and voids the round trips: it may be quick because it is bad.
        """
        self.totals.bytes_down += reply.size_bytes
        self.fault = outcome.message if outcome.reason is Reason.BAD_REPLY else ""
        if self.fault:
            self.breaker.missed(now_s)
            self._took_s.clear()
            self.late_s = FIRST_S
        else:
            self.breaker.replied()
        if outcome.verification is None:
            self.totals.refusals += 1
            return
        took_s = now_s - message.sent_s
        self._took_s.append(took_s)
        if self.is_measured:
            ordered = sorted(self._took_s)
            self._usual_s, self.late_s = (ordered[int(share * len(ordered))] for share in (0.5, LATE))
        self._misses = moved(self._misses, 0.0)
        self._windows.replied(message.request.window, reply.window_kept)

    def count_misses(self, now_s: float) -> None:
        """Count requests without a reply in the expected time; drop those that the session cancelled."""
        patience_s = PATIENCE_FIRST_S
        if self.is_measured:
            patience_s = max(PATIENCE_LEAST_S, PATIENCE * self.late_s)
        for sent, message in tuple(self.under_way.items()):
            if now_s - message.sent_s >= patience_s:
                self._missed(message, now_s)
            if message.missed and not message.pending.ids:
                self._drop(sent, now_s)

    def _drop(self, sent: int, now_s: float) -> None:
        self.transport.cancel(sent)
        self._missed(self.under_way.pop(sent), now_s)

    def _missed(self, message: Message, now_s: float) -> None:
        if message.missed:
            return
        message.missed = True
        self.totals.misses += 1
        self._misses = moved(self._misses, 1.0)
        self.breaker.missed(now_s)

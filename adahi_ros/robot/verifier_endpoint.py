# SPDX-License-Identifier: Apache-2.0
"""One of several verifiers that a robot may ask: what it is, what it has, and how it has replied so far."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field, replace

from adahi_ros.protocol.description import Description
from adahi_ros.protocol.request import Reply, Request
from adahi_ros.protocol.window import WHOLE, SentWindows
from adahi_ros.robot.link_estimate import FIRST_S, Breaker, moved
from adahi_ros.robot.transport import Transport

LATE = 0.95  # share of replies that are not late: Dean and Barroso's percentile
RECENT = 64  # round trips, of which the percentile is
ENOUGH = 8  # of them, to have one
PATIENCE, PATIENCE_LEAST_S = 3.0, 0.1  # a reply that takes so many times the percentile is missed
PATIENCE_FIRST_S = 1.0  # likewise, before there is one
MISS_COSTS_S = 0.1  # by which a verifier seems slower that replies to nothing
SOONEST_S = 1e-3  # that a reply is needed in, as it is told to a verifier
PROBES_OUT = 4  # one that is late still tells that the verifier is back
UNDER_WAY_MOST = 32  # messages; of more the oldest is forgotten


@dataclass
class VerifierTotals:
    """What one of several verifiers was asked, and what came of it.

    Attributes:
        requests: sent to it, whatever was sent to others.
        hedges: of them, those that another one was asked before.
        answers: that were executed, or went into the plan.
        spare: good replies that came after another one's, or when nobody needed them any more.
        refusals: replies that were no answer.
        misses: requests without a reply by when one is there as a rule.
        windows_resent: requests that it was sent again with the whole window.
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
class Asked:
    """What a robot asks, whichever verifier answers.

    Attributes:
        request: what it says.
        since_s: when it was asked for the first time.
        ids: by which the session knows it; none where nobody waits for it any more.
        hedge_s: when another verifier is asked; infinite for not.
        sent_s: when each verifier was sent it last, by name.
        refused: names of those that have given no answer.
    """

    request: Request
    since_s: float
    ids: list[int] = field(default_factory=list)
    hedge_s: float = math.inf
    sent_s: dict[str, float] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)


@dataclass(eq=False)
class Message:
    """A request that one verifier was sent.

    Attributes:
        asked: what it is about.
        request: as it was sent.
        whole: its window was sent whole.
        sent_s: when.
        missed: it was counted as one without a reply.
    """

    asked: Asked
    request: Request
    whole: bool
    sent_s: float
    missed: bool = False


@dataclass(eq=False)
class VerifierEndpoint:
    """See the module. Whoever asks several has one of these for each.

    Attributes:
        name: for people.
        transport: to it alone.
        description: that it has given of its target; None where it has not yet, or can give none.
        trouble: why it is not asked, though it has described itself; for people.
        totals: of what it was asked.
        breaker: open where it has not replied to several requests in a row.
        busy_until_s: when it may be asked again, as it has said.
        under_way: requests that may yet be replied to, by their ids of the transport, oldest first.
        probes: ids of questions what it is.
        describe_s: when to ask it what it is, if nobody has meanwhile.
        heard: it has described itself at least once.
        told: why it is of no use, as was said last; empty where it is of use. And when that was.
        told_s: see above.
        unknown_told: it was said that nobody knows its weights.
        late_s: after how long a reply is later than usual: the 95th percentile of recent round trips.
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
    heard: bool = False
    told: str = ""
    told_s: float = -math.inf
    unknown_told: bool = False
    late_s: float = FIRST_S
    _windows: SentWindows = field(default_factory=SentWindows)
    _misses: float = math.nan
    _took_s: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _usual_s: float = math.inf

    @property
    def cost_s(self) -> float:
        """How long it takes to reply as a rule, with a share of what a miss costs; infinite if unknown."""
        return self._usual_s + MISS_COSTS_S * self._misses if self.is_measured else math.inf

    @property
    def is_measured(self) -> bool:
        """Whether it has replied often enough to tell how long that takes."""
        return len(self._took_s) >= ENOUGH

    @property
    def lost(self) -> str:
        """Why it is of no use now though it was heard; empty where it is, or was never there."""
        if not self.heard:
            return ""
        if not self.transport.present:
            return "is gone"
        return "does not reply" if self.breaker.open else ""

    def is_spared(self, now_s: float) -> bool:
        """Whether it is left alone, for it does not reply, or has more to do than it can."""
        return self.breaker.open or now_s < self.busy_until_s

    def forget(self) -> None:
        """Take note that it is gone: whoever comes in its place has no window, and may be another."""
        self.description, self.trouble = None, ""
        self.busy_until_s = self.describe_s = -math.inf
        self.breaker.reset()
        self._windows.forget()
        self.forget_probes()  # one that is on its way yet would tell of who was there before

    # What it is

    def probe(self, now_s: float, again_s: float) -> None:
        """Ask it what it is; again after so long, unless it has replied."""
        self.describe_s = now_s + again_s
        while len(self.probes) >= PROBES_OUT:
            self.transport.cancel(self.probes.pop(0))
        self.probes.append(self.transport.describe())

    def forget_probes(self) -> None:
        """Wait for no description any more."""
        while self.probes:
            self.transport.cancel(self.probes.pop())

    # What it is asked

    def send(self, asked: Asked, now_s: float) -> int:
        """Send it what is asked, of the window what it lacks; return how many bytes."""
        request, waited_s = asked.request, now_s - asked.since_s
        if request.needed_in_s and waited_s:
            request = replace(request, needed_in_s=max(SOONEST_S, request.needed_in_s - waited_s))
        update = self._windows.update(request.window)
        sent = self.transport.submit(request, update)
        self.under_way[sent.id] = Message(asked, request, update.base == WHOLE, now_s)
        self.totals.requests += 1
        self.totals.hedges += bool(asked.sent_s) and self.name not in asked.sent_s
        self.totals.bytes_up += sent.size_bytes
        asked.sent_s[self.name] = now_s
        if len(self.under_way) > UNDER_WAY_MOST:
            self._drop(next(iter(self.under_way)), now_s)
        return sent.size_bytes

    def is_asked(self, asked: Asked) -> bool:
        """Whether it may yet reply to what is asked."""
        return any(message.asked is asked for message in self.under_way.values())

    def lacks_window(self, reply: Reply) -> None:
        """Take note that it does not have what it was thought to have."""
        self._windows.forget()
        self.totals.bytes_down += reply.size_bytes
        self.totals.windows_resent += 1

    def replied(self, message: Message, reply: Reply, good: bool, now_s: float) -> None:
        """Learn from a reply, also from one that nobody needs any more."""
        self.breaker.replied()
        self.totals.bytes_down += reply.size_bytes
        if not good:
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
        """Count the requests whose replies are not there though they should be.

        What nobody waits for any more is forgotten then.
        """
        patience_s = PATIENCE_FIRST_S
        if self.is_measured:
            patience_s = max(PATIENCE_LEAST_S, PATIENCE * self.late_s)
        for sent, message in tuple(self.under_way.items()):
            if now_s - message.sent_s >= patience_s:
                self._missed(message, now_s)
            if message.missed and not message.asked.ids:
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

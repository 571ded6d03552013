# SPDX-License-Identifier: Apache-2.0
"""One request in, one reply out, whatever the request is."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from adahi_ros.core.texts import NAME_LENGTH, shortened
from adahi_ros.policies.interface import TargetUnavailableError
from adahi_ros.protocol.request import RequestError, RequestFault
from adahi_ros.protocol.sent_reply import INTERNAL_ERROR, OK, STATUS_NAMES, SentReply
from adahi_ros.protocol.sent_request import SentRequest
from adahi_ros.server.admission import Refusal
from adahi_ros.server.engine import BatchInFlight, Replied
from adahi_ros.server.robot_sessions import Sessions
from adahi_ros.server.served_targets import ServedTarget, ServedTargets

RECENT = 1000  # replies that are OK, of which it is remembered how long they took


def target_name(told: str, checkpoint: str) -> str:
    """Return the name of a target: what it was told to be, or its checkpoint, of a long path two parts.

    Of a shipped one it is all of the name: those that plan are called alike at the end, `TASK/plans/target`.

    Raises:
        ValueError: it is longer than a request may say.
    """
    path = Path(checkpoint)
    parts = path.parts[-2:] if path.is_absolute() or len(checkpoint) > NAME_LENGTH else path.parts
    name = told or "/".join(parts)
    if len(name) > NAME_LENGTH:
        raise ValueError(f"target: {name!r}, must have at most {NAME_LENGTH} characters")
    return name


class RequestHeader(NamedTuple):
    """What is known of a request before the rest of it is read. Nothing of it is checked.

    Attributes:
        robot_id: name of the robot, of any length.
        session: of the robot; see `Sessions`.
        episode, step, first_step: as in `SentRequest`.
        needed_in_s: how soon the robot needs the reply; 0 where it does not say.
        target: that it names, of any length.
    """

    robot_id: str
    session: int
    episode: int
    step: int
    first_step: int
    needed_in_s: float = 0.0
    target: str = ""

    @property
    def about(self) -> tuple[int, int, int]:
        """What a reply says that it is about."""
        return self.episode, self.step, self.first_step


class Served(NamedTuple):
    """What became of a request.

    Attributes:
        reply: to be sent.
        refusal: that the request was refused, and why, for the log; empty where there is nothing to say.
        shared: that two robots have one name, likewise.
    """

    reply: SentReply
    refusal: str = ""
    shared: str = ""


@dataclass
class Counts:
    """What a verifier has done so far.

    Attributes:
        replies: by the name of their status.
        refused: those that somebody should look into.
        compute_ms: spent on requests that were verified or refused, in all.
        recent_ms: of each of the last batches.
        unheard: those that could not reach who had asked.
        batches: in which these were served.
        served: how many these were.
    """

    replies: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    compute_ms: float = 0.0
    recent_ms: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    unheard: int = 0
    batches: int = 0
    served: int = 0


@dataclass(eq=False)
class InFlight:
    """Requests to one target that are being verified together.

    Attributes:
        target: is asked; None where no request could be read, and nobody is.
        places: of these requests among those that were taken together.
        headings: of them.
        begun: by the target's engine.
    """

    target: ServedTarget | None
    places: list[int]
    headings: list[RequestHeader]
    begun: BatchInFlight


class VerificationService:
    """Replies to the requests of robots, and counts.

    Attributes:
        counts: so far.

    Args:
        targets: verify.
    """

    def __init__(self, targets: ServedTargets) -> None:
        self.counts = Counts()
        self.targets = targets
        self._sessions = Sessions()
        self._under_way: list[InFlight] = []

    def replies(
        self, asked: Sequence[tuple[RequestHeader, Callable[[], SentRequest]]], now_s: float
    ) -> list[Served]:
        """Return what becomes of requests that are served together, once that is known; raises nothing.

        Args:
            asked: of each the heading, and what returns the request; that may raise what it likes, a
                RequestError to refuse it.
            now_s: of a clock that only goes forward.
        """
        found: dict[int, Served] = {}
        for under_way in self.begin(asked):
            found |= zip(under_way.places, self.finish(under_way, now_s), strict=True)
        return [found[place] for place in range(len(asked))]

    def begin(
        self, asked: Sequence[tuple[RequestHeader, Callable[[], SentRequest]]], until_s: float = math.inf
    ) -> list[InFlight]:
        """Have requests verified that were taken together, those to one target together; raises nothing.

        Args:
            asked: see `replies`.
            until_s: see `Engine.begin`.
        """
        by_target: dict[ServedTarget, list[tuple[int, SentRequest]]] = {}
        begun: list[InFlight] = []
        for place, (heading, read) in enumerate(asked):
            try:
                request = read()
                by_target.setdefault(self.targets.named(request.target), []).append((place, request))
            except Exception as error:  # noqa: BLE001  one robot's request must not end the service of others
                fault = error.with_traceback(None)  # which would keep the request in memory
                begun.append(InFlight(None, [place], [heading], BatchInFlight([fault], {}, [])))
        for target, requests in by_target.items():
            places = [place for place, _ in requests]
            engines = target.engine.begin([request for _, request in requests], until_s)
            begun.append(InFlight(target, places, [asked[place][0] for place in places], engines))
        self._under_way += begun
        return begun

    def finish(self, under_way: InFlight, now_s: float) -> list[Served]:
        """Return what becomes of requests that are under way, or waits until that is known; raises nothing.

        Args:
            under_way: returned by `begin`, once.
            now_s: of a clock that only goes forward.
        """
        self._under_way.remove(under_way)
        target, begun = under_way.target, under_way.begun
        found: Sequence[object] = begun.asked if target is None else target.engine.finish(begun, now_s)
        return [
            self._served(heading, replied, now_s)
            for heading, replied in zip(under_way.headings, found, strict=True)
        ]

    def abandon(self, under_way: InFlight) -> None:
        """Forget requests that are under way; nobody is told what becomes of them."""
        self._under_way.remove(under_way)

    def held(self) -> Callable[[RequestHeader], bool]:
        """Return what says of a request whether it must wait, because of those that are under way now.

        It does where its target has as many as it verifies side by side, or it is a copy of one of them,
        which is replied to as that one is, once that is known.
        """
        batches = Counter(each.target for each in self._under_way)
        full = {
            target.description.target
            for target, count in batches.items()
            if target is not None and count >= target.engine.at_once
        }
        copies = {_alike(heading) for each in self._under_way for heading in each.headings}
        first = self.targets.names[0]
        return lambda heading: (heading.target or first) in full or _alike(heading) in copies

    def _served(self, heading: RequestHeader, replied: object, now_s: float) -> Served:
        about, shared = heading.about, ""
        if isinstance(replied, Replied):
            verdict, kept = replied
            accepted = tuple(map(bool, verdict.accepted[0]))
            reply = SentReply(OK, "", *about, verdict.actions.ravel(), accepted, kept)
            if self._sessions.heard(heading.robot_id, heading.session, now_s):
                shared = (
                    f"robot_id: {heading.robot_id!r}, two robots ask by this name, must be another for each"
                )
        elif isinstance(replied, RequestError):
            reply = SentReply(int(replied.fault), shortened(str(replied)), *about)
        elif isinstance(replied, TargetUnavailableError):
            if replied.retry_after_s:
                return Served(self.busy(heading, Refusal(shortened(str(replied)), replied.retry_after_s)))
            reply = SentReply(int(RequestFault.TARGET_UNAVAILABLE), shortened(str(replied)), *about)
        else:
            message = f"{type(replied).__name__}: {replied}"
            reply = SentReply(INTERNAL_ERROR, shortened(message), *about)
        return Served(reply, self._counted(heading, reply), shared)

    def overtaken(self, heading: RequestHeader) -> SentReply:
        """Return what is replied to a request that is not verified, because a later one overtook it."""
        message = f"step_id: {heading.step}, was overtaken by a later request while it waited for its turn"
        reply = SentReply(int(RequestFault.SUPERSEDED), message, *heading.about)
        self._counted(heading, reply)
        return reply

    def busy(self, heading: RequestHeader, refusal: Refusal) -> SentReply:
        """Return what is replied to a request that is not let in."""
        about = heading.about
        reply = SentReply(int(RequestFault.BUSY), refusal.why, *about, retry_after_s=refusal.retry_after_s)
        self.counts.replies[STATUS_NAMES[reply.status]] += 1
        return reply

    def dismissed(self, heading: RequestHeader) -> SentReply:
        """Return what is replied to a request that waits when the service ends."""
        message = "the verifier was deactivated before the turn of this request"
        reply = SentReply(INTERNAL_ERROR, message, *heading.about)
        self.counts.replies[STATUS_NAMES[reply.status]] += 1  # nobody's fault
        return reply

    def spent(self, requests: int, took_s: float) -> None:
        """Take note of how long requests took that were served together."""
        self.counts.batches += 1
        self.counts.served += requests
        self.counts.compute_ms += 1e3 * took_s
        self.counts.recent_ms.append(1e3 * took_s)

    def unheard(self, heading: RequestHeader, reliability: str) -> str:
        """Count a reply that cannot reach who asked; return what is to be said of him.

        Args:
            heading: of the request.
            reliability: of the service.
        """
        self.counts.unheard += 1
        robot = shortened(heading.robot_id, NAME_LENGTH)
        return (
            f"no reply reaches {robot!r}, and others wait for 0.1 s each time: unless it has just come or "
            f"gone, the reliability of its client must be {reliability}"
        )

    def shared_names(self, now_s: float) -> Mapping[str, int]:
        """Return the names that robots share at present, and how often a session of each has come back."""
        return self._sessions.shared(now_s)

    def _counted(self, heading: RequestHeader, reply: SentReply) -> str:
        """Count a reply; return what is to be said of a refusal."""
        self.counts.replies[STATUS_NAMES[reply.status]] += 1
        if reply.status in (OK, RequestFault.WINDOW_UNKNOWN, RequestFault.SUPERSEDED):
            return ""  # nobody's fault: the whole window, or a later request, is on its way
        self.counts.refused += 1
        robot = shortened(heading.robot_id, NAME_LENGTH)
        return f"refused {robot!r}, episode {heading.episode}, step {heading.step}: {reply.message}"


def _alike(heading: RequestHeader) -> tuple[str, int, tuple[int, int, int]]:
    """Return what is the same of copies of a request, and of no others."""
    return heading.robot_id, heading.session, heading.about

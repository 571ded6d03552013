# SPDX-License-Identifier: Apache-2.0
"""One request in, one reply out, whatever the request is."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from adahi_ros.core.texts import NAME_LENGTH, shortened
from adahi_ros.policies.interface import TargetUnavailableError
from adahi_ros.protocol.request import (
    INTERNAL_ERROR,
    OK,
    STATUS_NAMES,
    Reply,
    Request,
    RequestError,
    RequestFault,
)
from adahi_ros.server.admission import Refusal
from adahi_ros.server.engine import BatchInFlight, ServedTarget, ServedTargets

NAMES_KEPT = 1024
SESSIONS_KEPT = 8  # of a name, beside the newest
LATE_S = 1.0  # a request of a session that is over may come so late
MAX_AGE_S = 3600.0  # a session that comes back after so long is taken for a new one
SHARED_S = 10.0  # a name is said to be shared for so long
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


class Served(NamedTuple):
    """What became of a request.

    Attributes:
        reply: to be sent.
        refusal: that the request was refused, and why, for the log; empty where there is nothing to say.
        shared: that two robots have one name, likewise.
    """

    reply: Reply
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
        requests: these.
        begun: by the target's engine.
    """

    target: ServedTarget | None
    places: list[int]
    requests: list[Request]
    begun: BatchInFlight


@dataclass
class _Name:
    """What is known of a name.

    Attributes:
        session: the present one.
        superseded: those before it, and when each was superseded; that of the longest ago first.
        returns: how often one of those came back.
        returned_s: when one did last.
    """

    session: int
    superseded: OrderedDict[int, float]
    returns: int = 0
    returned_s: float = -math.inf


class Sessions:
    """Finds out whether two robots use one name; remembers the sessions of the names that asked last.

    Each start of a robot's node is a session. A robot that is restarted changes from one session to the next,
    and the one before never comes back. Of two robots of one name each supersedes the other, again and again.
    Nothing else depends on sessions: content names the windows, so both robots get the right replies, but
    their draws are not independent.
    """

    def __init__(self) -> None:
        self._names: OrderedDict[str, _Name] = OrderedDict()

    def heard(self, robot_id: str, session_id: int, now_s: float) -> bool:
        """Take note of a request; return whether it tells that two robots have this name.

        Args:
            robot_id: the name.
            session_id: of the request.
            now_s: of a clock that only goes forward.
        """
        name = self._names.setdefault(robot_id, _Name(session_id, OrderedDict()))
        self._names.move_to_end(robot_id)
        if len(self._names) > NAMES_KEPT:
            self._names.popitem(last=False)
        age_s = now_s - name.superseded.get(session_id, -math.inf)
        if session_id == name.session or age_s < LATE_S:
            return False
        name.superseded.pop(session_id, None)
        name.superseded[name.session] = now_s
        if len(name.superseded) > SESSIONS_KEPT:
            name.superseded.popitem(last=False)
        name.session = session_id
        if age_s > MAX_AGE_S:
            return False
        name.returns += 1
        name.returned_s = now_s
        return True

    def shared(self, now_s: float) -> dict[str, int]:
        """Return the names that robots share at present, and how often a session of each has come back."""
        return {
            robot_id: name.returns
            for robot_id, name in self._names.items()
            if now_s - name.returned_s <= SHARED_S
        }


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

    def replies(self, requests: Sequence[Request], now_s: float) -> list[Served]:
        """Return the replies to requests that are served together, once they are known; raises nothing.

        Args:
            requests: unchecked.
            now_s: of a clock that only goes forward.
        """
        found: dict[int, Served] = {}
        for under_way in self.begin(requests):
            found |= zip(under_way.places, self.finish(under_way, now_s), strict=True)
        return [found[place] for place in range(len(requests))]

    def begin(self, requests: Sequence[Request], until_s: float = math.inf) -> list[InFlight]:
        """Have requests verified that were taken together, those to one target together; raises nothing.

        Args:
            requests: unchecked.
            until_s: see `Engine.begin`.
        """
        by_target: dict[ServedTarget, list[int]] = {}
        begun: list[InFlight] = []
        for place, request in enumerate(requests):
            try:
                named = request.target if request.fault is None else ""  # any engine refuses it
                by_target.setdefault(self.targets.named(named), []).append(place)
            except Exception as error:  # noqa: BLE001  one robot's request must not end the service of others
                fault = error.with_traceback(None)  # which would keep the request in memory
                begun.append(InFlight(None, [place], [request], BatchInFlight([fault], {}, [])))
        for target, places in by_target.items():
            of_target = [requests[place] for place in places]
            begun.append(InFlight(target, places, of_target, target.engine.begin(of_target, until_s)))
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
            self._served(request, replied, now_s)
            for request, replied in zip(under_way.requests, found, strict=True)
        ]

    def abandon(self, under_way: InFlight) -> None:
        """Forget requests that are under way; nobody is told what becomes of them."""
        self._under_way.remove(under_way)

    def held(self) -> Callable[[Request], bool]:
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
        copies = {_alike(request) for each in self._under_way for request in each.requests}
        first = self.targets.names[0]
        return lambda request: (request.target or first) in full or _alike(request) in copies

    def _served(self, request: Request, replied: object, now_s: float) -> Served:
        shared = ""
        if isinstance(replied, Reply):
            reply = replied
            if self._sessions.heard(request.robot_id, request.session, now_s):
                shared = (
                    f"robot_id: {request.robot_id!r}, two robots ask by this name, must be another for each"
                )
        elif isinstance(replied, RequestError):
            reply = Reply(int(replied.fault), shortened(str(replied)), *request.about)
        elif isinstance(replied, TargetUnavailableError):
            if replied.retry_after_s:
                return Served(self.busy(request, Refusal(shortened(str(replied)), replied.retry_after_s)))
            reply = Reply(int(RequestFault.TARGET_UNAVAILABLE), shortened(str(replied)), *request.about)
        else:
            message = f"{type(replied).__name__}: {replied}"
            reply = Reply(INTERNAL_ERROR, shortened(message), *request.about)
        return Served(reply, self._counted(request, reply), shared)

    def overtaken(self, request: Request) -> Reply:
        """Return what is replied to a request that is not verified, because a later one overtook it."""
        message = f"step_id: {request.step}, was overtaken by a later request while it waited for its turn"
        reply = Reply(int(RequestFault.SUPERSEDED), message, *request.about)
        self._counted(request, reply)
        return reply

    def busy(self, request: Request, refusal: Refusal) -> Reply:
        """Return what is replied to a request that is not let in."""
        about = request.about
        reply = Reply(int(RequestFault.BUSY), refusal.why, *about, retry_after_s=refusal.retry_after_s)
        self.counts.replies[STATUS_NAMES[reply.status]] += 1
        return reply

    def dismissed(self, request: Request) -> Reply:
        """Return what is replied to a request that waits when the service ends."""
        message = "the verifier was deactivated before the turn of this request"
        reply = Reply(INTERNAL_ERROR, message, *request.about)
        self.counts.replies[STATUS_NAMES[reply.status]] += 1  # nobody's fault
        return reply

    def spent(self, requests: int, took_s: float) -> None:
        """Take note of how long requests took that were served together."""
        self.counts.batches += 1
        self.counts.served += requests
        self.counts.compute_ms += 1e3 * took_s
        self.counts.recent_ms.append(1e3 * took_s)

    def unheard(self, request: Request, reliability: str) -> str:
        """Count a reply that cannot reach who asked; return what is to be said of him.

        Args:
            request: of the request.
            reliability: of the service.
        """
        self.counts.unheard += 1
        robot = shortened(request.robot_id, NAME_LENGTH)
        return (
            f"no reply reaches {robot!r}, and others wait for 0.1 s each time: unless it has just come or "
            f"gone, the reliability of its client must be {reliability}"
        )

    def shared_names(self, now_s: float) -> Mapping[str, int]:
        """Return the names that robots share at present, and how often a session of each has come back."""
        return self._sessions.shared(now_s)

    def _counted(self, request: Request, reply: Reply) -> str:
        """Count a reply; return what is to be said of a refusal."""
        self.counts.replies[STATUS_NAMES[reply.status]] += 1
        if reply.status in (OK, RequestFault.WINDOW_UNKNOWN, RequestFault.SUPERSEDED):
            return ""  # nobody's fault: the whole window, or a later request, is on its way
        self.counts.refused += 1
        robot = shortened(request.robot_id, NAME_LENGTH)
        return f"refused {robot!r}, episode {request.episode}, step {request.step}: {reply.message}"


def _alike(request: Request) -> tuple[str, int, tuple[int, int, int]]:
    """Return what is the same of copies of a request, and of no others."""
    return request.robot_id, request.session, request.about

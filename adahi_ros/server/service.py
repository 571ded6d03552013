# SPDX-License-Identifier: Apache-2.0
"""Replies to every request, valid or not, and counts; names of targets, and names that robots share."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from adahi_ros.core.texts import NAME_LENGTH, shortened
from adahi_ros.policies.interface import TargetUnavailableError
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.request import (
    INTERNAL_ERROR,
    STATUS_NAMES,
    Reply,
    Request,
    RequestError,
    RequestFault,
)
from adahi_ros.server.admission import Refusal
from adahi_ros.server.engine import Batch, Engine

if TYPE_CHECKING:
    from adahi_ros.server.assignments import Assignments

TARGETS_MOST = 64
"""Of one verifier, as in `DescribeTarget.srv`."""
NAMES_KEPT = 1024
SESSIONS_KEPT = 8  # of a name, besides the newest
LATE_S = 1.0  # a late request of a former session arrives within this time
MAX_AGE_S = 3600.0  # a session that returns after this time counts as new
SHARED_S = 10.0  # how long a name is reported as shared
RECENT = 1000  # batches in the percentiles of compute times
NAMED_MOST = 64
"""Robots with a count of their own: senders choose their names, and may invent any number."""
OTHERS = "(others)"
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
TIMES_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


def target_name(configured: str, checkpoint: str) -> str:
    """Return the configured name of a target, or else its checkpoint: the last two parts of a long path.

    A shipped checkpoint keeps its whole name, because many end alike: `TASK/plans/target`.

    Raises:
        ValueError: it is longer than the field of a request.
    """
    path = Path(checkpoint)
    parts = path.parts[-2:] if path.is_absolute() or len(checkpoint) > NAME_LENGTH else path.parts
    name = configured or "/".join(parts)
    if len(name) > NAME_LENGTH:
        raise ValueError(f"target: {name!r}, must have at most {NAME_LENGTH} characters")
    return name


@dataclass(frozen=True, eq=False)
class LoadedTarget:
    """A policy that replies to robots.

    Attributes:
        engine: replies.
        description: of the target, with its name.
        device: where it computes.
    """

    engine: Engine
    description: Description
    device: str = "cpu"


class ServedTargets:
    """The served targets by name; the first is the default.

    Args:
        first: the default target, which cannot be removed.
    """

    def __init__(self, first: LoadedTarget) -> None:
        self._by_name = {first.description.target: first}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all targets, the default first."""
        return tuple(self._by_name)

    def named(self, name: str) -> LoadedTarget:
        """Return the target that a request names.

        Raises:
            RequestError: there is no target of this name.
        """
        if not name:
            return next(iter(self._by_name.values()))
        found = self._by_name.get(name)
        if found is None:
            there_are = ", ".join(map(repr, self._by_name))
            raise RequestError(RequestFault.UNKNOWN_TARGET, f"target: {name!r}, must be one of {there_are}")
        return found

    def put(self, target: LoadedTarget) -> None:
        """Serve a target from now on; it replaces a target of the same name.

        The replacement must read and propose the same, because robots do not request the description again.

        Raises:
            ValueError: it reads or proposes something else, or there are too many targets.
        """
        name = target.description.target
        before = self._by_name.get(name)
        if before is None and len(self._by_name) >= TARGETS_MOST:
            raise ValueError(f"target: {name!r}, must be one of the {TARGETS_MOST} that are served")
        if before and before.description.without_weights != target.description.without_weights:
            raise ValueError(
                f"target: {name!r}, is served and reads or proposes something else; must be another name"
            )
        self._by_name[name] = target

    def remove(self, name: str) -> None:
        """Stop serving a target.

        Raises:
            ValueError: there is no target of this name, or it is the default: robots that name none would
                execute the plans of another target.
        """
        if name not in self._by_name:
            raise ValueError(f"target: {name!r}, must be one of {', '.join(map(repr, self._by_name))}")
        if name == self.names[0]:
            raise ValueError(f"target: {name!r}, is the default target, must be another one")
        del self._by_name[name]


class Served(NamedTuple):
    """A reply, and what to log.

    Attributes:
        reply: to send.
        refusal: log text of a refused request; may be empty.
        shared: log text that two robots have one name; may be empty.
    """

    reply: Reply
    refusal: str = ""
    shared: str = ""


@dataclass
class _Name:
    """Sessions of a robot's name.

    Attributes:
        session: the current one.
        superseded: former sessions and when each was superseded, oldest first.
        returns: how often a former session came back.
        returned_s: when one did last.
    """

    session: int
    superseded: OrderedDict[int, float]
    returns: int = 0
    returned_s: float = -math.inf


class Sessions:
    """Detects two robots with one name, from the sessions of recent names.

    Each start of a robot's node is a session. After a restart the former session never comes back. Two robots
    with one name supersede each other again and again. Both get the right replies, because windows are
    identified by content, but their random draws are not independent.
    """

    def __init__(self) -> None:
        self._names: OrderedDict[str, _Name] = OrderedDict()

    def received(self, robot_id: str, session_id: int, now_s: float) -> bool:
        """Count a request; return whether it shows that two robots have this name.

        Args:
            robot_id: the name.
            session_id: of the request.
            now_s: monotonic time.
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
        """Return the names that robots share now, and how often a session of each has come back."""
        return {
            robot_id: name.returns
            for robot_id, name in self._names.items()
            if now_s - name.returned_s <= SHARED_S
        }


class Buckets:
    """Counts values by the first of some upper bounds that they do not exceed.

    Attributes:
        bounds: in order; the last count is of what exceeds all of them.
        counts: one more than bounds.
        total: sum of all values.

    Args:
        bounds: see the class.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass
class Counts:
    """Counts of a verifier.

    Attributes:
        robots: requests, by the printable name of their robot; after `NAMED_MOST` names, by `OTHERS`.
        replies: by the name of their status.
        refused: refused requests that need attention.
        batch_s: time of each batch, s.
        batch_sizes: requests of each batch.
        recent_ms: time of each of the last batches.
        unheard: replies that could not reach their client.
    """

    robots: Counter[str] = field(default_factory=Counter)
    replies: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    batch_s: Buckets = field(default_factory=lambda: Buckets(TIMES_S))
    batch_sizes: Buckets = field(default_factory=lambda: Buckets(SIZES))
    recent_ms: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    unheard: int = 0

    def add(self, robot_id: str, status: str) -> None:
        """Count a request and its reply."""
        name = robot_id if robot_id in self.robots else shortened(robot_id, NAME_LENGTH)
        self.robots[name if name in self.robots or len(self.robots) < NAMED_MOST else OTHERS] += 1
        self.replies[status] += 1


class VerificationService:
    """Replies to the requests of robots, and counts.

    Attributes:
        counts: so far.
        targets: verify.
        assignments: replace fields of requests; None for none.

    Args:
        targets: see the class.
    """

    def __init__(self, targets: ServedTargets) -> None:
        self.counts = Counts()
        self.targets = targets
        self.assignments: Assignments | None = None
        self._sessions = Sessions()

    def replies(self, requests: Sequence[Request], now_s: float) -> list[Served]:
        """Return the replies to requests that are served together; blocks, and raises nothing.

        Args:
            requests: unchecked.
            now_s: monotonic time.
        """
        found: dict[int, Served] = {}
        for places, batch in self.begin(requests):
            found |= zip(places, self.finish(batch, now_s), strict=True)
        return [found[place] for place in range(len(requests))]

    def begin(self, requests: Sequence[Request], until_s: float = math.inf) -> list[tuple[list[int], Batch]]:
        """Start verifying requests; raises nothing.

        A target has one batch, or one of each robot where it serves each alone.

        Args:
            requests: unchecked.
            until_s: see `Engine.begin`.

        Returns:
            For each batch the indices of its requests.
        """
        of_engine: dict[tuple[Engine, int], tuple[list[int], list[Request]]] = {}
        for place, request in enumerate(requests):
            target = self.targets.named("")  # any engine refuses a request with a fault
            if request.fault is None:
                if self.assignments is not None:
                    request = self.assignments.applied(request)
                try:
                    target = self.targets.named(request.target)
                except RequestError as error:
                    request = replace(request, fault=error)
            batch = target.engine, place if target.engine.alone else 0
            places, its = of_engine.setdefault(batch, ([], []))
            places.append(place)
            its.append(request)
        return [(places, engine.begin(its, until_s)) for (engine, _), (places, its) in of_engine.items()]

    def finish(self, batch: Batch, now_s: float) -> list[Served]:
        """Wait for the replies to a batch, and return them; raises nothing.

        Args:
            batch: from `begin`, once.
            now_s: monotonic time.
        """
        replies = batch.engine.finish(batch, now_s)
        return [
            self.served(request, replied, now_s)
            for request, replied in zip(batch.requests, replies, strict=True)
        ]

    def turns(
        self, in_flight: Sequence[Batch]
    ) -> tuple[Callable[[Request], bool], Callable[[Request], bool]]:
        """Return two functions of a request: whether it must wait, and whether it gets a place.

        It must wait if its target is computing as many batches as it can, or if it is a copy of a request in
        one of them: a copy gets the same reply. A target that serves each robot alone has a place for each
        batch that it can compute; requests to other targets share one batch.

        Args:
            in_flight: batches that have started and not ended.
        """
        engines = {name: self.targets.named(name).engine for name in ("", *self.targets.names)}
        batches = Counter(batch.engine for batch in in_flight)
        full = {name for name, engine in engines.items() if batches[engine] >= engine.at_once}
        copies = {_alike(request) for batch in in_flight for request in batch.requests}

        def waits(request: Request) -> bool:
            return request.target in full or (bool(copies) and _alike(request) in copies)

        def has_place(request: Request) -> bool:
            engine = engines.get(request.target)
            if engine is None or not engine.alone:
                return True
            batches[engine] += 1
            return batches[engine] <= engine.at_once

        return waits, has_place

    def served(self, request: Request, replied: Reply | Exception, now_s: float) -> Served:
        """Return what to send and to log for a request, from an engine's reply or from its fault."""
        if isinstance(replied, Reply):
            self.counts.add(request.robot_id, STATUS_NAMES[replied.status])
            shared = self._sessions.received(request.robot_id, request.session, now_s)
            what = f"robot_id: {request.robot_id!r}, two robots use this name, must be unique for each robot"
            return Served(replied, shared=what if shared else "")
        status, message = INTERNAL_ERROR, f"{type(replied).__name__}: {replied}"
        if isinstance(replied, RequestError):
            status, message = int(replied.fault), str(replied)
        elif isinstance(replied, TargetUnavailableError):
            status, message = int(RequestFault.TARGET_UNAVAILABLE), str(replied)
            if replied.retry_after_s:
                return Served(self.busy(request, Refusal(message, replied.retry_after_s)))
        reply = self._refused(request, status, message)
        if status in (RequestFault.WINDOW_UNKNOWN, RequestFault.SUPERSEDED):
            return Served(reply)  # no fault: the whole window, or a later request, follows
        self.counts.refused += 1
        robot = shortened(request.robot_id, NAME_LENGTH)
        where = f"episode {request.episode}, step {request.step}"
        return Served(reply, f"refused {robot!r}, {where}: {reply.message}")

    def overtaken(self, request: Request) -> Reply:
        """Return the reply to a request that is not verified, because a later one overtook it."""
        message = f"step_id: {request.step}, was overtaken by a later request while it waited for its turn"
        return self._refused(request, int(RequestFault.SUPERSEDED), message)

    def busy(self, request: Request, refusal: Refusal) -> Reply:
        """Return the reply to a request that is not accepted now."""
        return self._refused(request, int(RequestFault.BUSY), refusal.why, refusal.retry_after_s)

    def dismissed(self, request: Request) -> Reply:
        """Return the reply to a request that still waits when the service ends."""
        message = "the verifier was deactivated before the turn of this request"
        return self._refused(request, INTERNAL_ERROR, message)

    def _refused(self, request: Request, status: int, message: str, retry_after_s: float = 0.0) -> Reply:
        self.counts.add(request.robot_id, STATUS_NAMES[status])
        return Reply(status, shortened(message), *request.about, retry_after_s=retry_after_s)

    def spent(self, requests: int, took_s: float) -> None:
        """Count how long a batch of requests took."""
        self.counts.batch_sizes.add(requests)
        self.counts.batch_s.add(took_s)
        self.counts.recent_ms.append(1e3 * took_s)

    def unheard(self, request: Request, reliability: str) -> str:
        """Count a reply that cannot reach its client; return the text for the log.

        Args:
            request: that it replies to.
            reliability: of the service.
        """
        self.counts.unheard += 1
        robot = shortened(request.robot_id, NAME_LENGTH)
        return (
            f"no reply reaches {robot!r}, and each one delays other robots by 0.1 s: unless its client has "
            f"just started or ended, its reliability must be {reliability}"
        )

    def shared_names(self, now_s: float) -> Mapping[str, int]:
        """See `Sessions.shared`."""
        return self._sessions.shared(now_s)


def _alike(request: Request) -> tuple[str, int, tuple[int, int, int], bytes]:
    """Return what only copies of one request have in common: a chunk's runs differ in their codes."""
    return request.robot_id, request.session, request.about, request.codes.tobytes()

# SPDX-License-Identifier: Apache-2.0
"""Schedules the requests of a verifier's services: it takes all waiting requests before it serves the next.

If a client's reader does not match, for example because of its reliability, rmw_fastrtps blocks each reply to
it for 0.1 s (`max_blocking_time`). This cannot be detected in advance, so the log names the client.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from adahi_msgs.srv import VerifyDraft

from adahi_ros.nodes.common.deferred_service import DeferredService
from adahi_ros.nodes.common.parameters import parameter
from adahi_ros.nodes.common.qos import REQUESTS_KEPT
from adahi_ros.nodes.common.reachable import Clients, ReachableClients
from adahi_ros.nodes.server.robot_messages import from_request, header_of, to_reply
from adahi_ros.protocol.request import OK, Reply, Request, RequestError, RequestFault
from adahi_ros.server.admission import Admission, Refusal
from adahi_ros.server.engine import Batch
from adahi_ros.server.request_queue import (
    LATEST_S,
    SOONEST_S,
    UNSAID_S,
    WAITING_MOST,
    RequestQueue,
    Turn,
    needed_in_s,
)
from adahi_ros.server.service import Served, VerificationService

SIZE = 16
QUOTA_HZ = 100.0
LATE = ("answer", "refuse")
DISMISSING_S = 0.5  # longest time for last replies when the node ends


@dataclass(frozen=True)
class BatchParameters:
    """Batches, and which requests are accepted."""

    size: int = parameter(SIZE, "Largest number of robots in a batch; 1 for one by one", 1, 1024)
    wait_s: float = parameter(
        0.0,
        "How long the first request of a batch waits for others, s; requests that arrive during a "
        "batch join the next one anyway",
        0.0,
        10.0,
    )
    waiting: int = parameter(WAITING_MOST, "Requests that may wait; more get STATUS_BUSY", 1, 65536)
    quota_hz: float = parameter(
        QUOTA_HZ,
        "Requests per second of one robot, and of a client for each robot that it serves in time; more "
        "get STATUS_BUSY. 0 for any number",
        0.0,
        1e6,
    )
    deadline_s: float = parameter(
        UNSAID_S,
        "Deadline of requests that have none, s; the earliest deadline is served first",
        SOONEST_S,
        LATEST_S,
    )
    late: str = parameter(
        "answer",
        "What happens to a request after its deadline. answer: a robot without a plan may still "
        "use the reply; refuse: STATUS_BUSY, without computing",
        choices=LATE,
    )


class ReplyTo(NamedTuple):
    """Destination of a reply: the service that sends it, and the header of the request, both of rclpy."""

    service: DeferredService
    header: object


_Turn = Turn[ReplyTo]


class RequestScheduler:
    """Serves a verifier's services in batches; its executor passes one request at a time.

    Args:
        services: of the requests, each by the name of the only robot that may use it; '' for any.
        verification: makes the replies.
        batch: its parameters.
        served: called with log texts of a request: a refusal, and a shared name; either may be empty.
        unheard: called with a request if its reply cannot reach its client.
        wake: called, in any thread, when a batch that is verified elsewhere is ready.
    """

    def __init__(
        self,
        services: Mapping[str, Any],
        verification: VerificationService,
        batch: BatchParameters,
        served: Callable[[str, str], None],
        unheard: Callable[[Request], None],
        wake: Callable[[], object] = lambda: None,
    ) -> None:
        self._services = services
        self._verification = verification
        self._batch = batch
        self._served, self._unheard, self._wake = served, unheard, wake
        self._clients, self._reachable = Clients(), ReachableClients()
        self._waiting: RequestQueue[ReplyTo] = RequestQueue(batch.waiting)
        self._admission = Admission(batch.quota_hz)
        self._most_waited = 0
        self._all_held = False
        self._in_flight: list[tuple[Batch, list[_Turn], float]] = []
        self._refuses_late = batch.late == "refuse"

    def __len__(self) -> int:
        """Number of requests that were taken from DDS and wait."""
        return len(self._waiting)

    @property
    def wait_s(self) -> float:
        """Time until there is something to serve, if nothing arrives; infinite if nothing waits."""
        if any(batch.done for batch, _, _ in self._in_flight):
            return 0.0
        if not len(self._waiting) or self._all_held:
            return math.inf
        if len(self._waiting) >= self._batch.size:
            return 0.0
        return max(0.0, self._waiting.oldest_s + self._batch.wait_s - time.monotonic())

    def serve(self) -> bool:
        """Serve the next requests; return whether there were any."""
        for robot, message, header in self._take():
            self.admit(robot, message, header)
        if self.wait_s > 0.0:
            return False
        self._finish()
        if self._refuses_late:
            for late in self._waiting.take_late(time.monotonic()):
                self._refuse(late, self._admission.late(len(self._waiting)))
        in_flight = [batch for batch, _, _ in self._in_flight]
        turns = self._waiting.take(self._batch.size, *self._verification.turns(in_flight))
        self._all_held = not turns
        self._most_waited = max(self._most_waited, len(self._waiting))
        if turns:
            self._begin(turns)
        self._finish()  # what is verified in this process is ready by now
        return True

    def _begin(self, turns: list[_Turn]) -> None:
        """Start verifying requests."""
        started_s = time.monotonic()
        until_s = started_s + LATEST_S
        if self._refuses_late:
            unsaid_s = self._batch.deadline_s
            until_s = max(turn.came_s + needed_in_s(turn.request, unsaid_s) for turn in turns)
        for places, batch in self._verification.begin([turn.request for turn in turns], until_s):
            self._in_flight.append((batch, [turns[place] for place in places], started_s))
            batch.when_done(self._wake)

    def _finish(self) -> None:
        """Reply to the requests that have been verified."""
        for each in [each for each in self._in_flight if each[0].done]:
            batch, turns, started_s = each
            side_by_side = len(self._in_flight)
            self._in_flight.remove(each)
            now_s = time.monotonic()
            replies = self._verification.finish(batch, now_s)
            self._verification.spent(len(turns), now_s - started_s)
            clients = [turn.client for turn in turns]
            self._admission.served(clients, (now_s - started_s) / side_by_side, now_s)
            for turn, served in zip(turns, replies, strict=True):
                # A sender may claim to have much time; a robot without a plan claims to have none.
                late_s = min(max(turn.due_s, turn.came_s + UNSAID_S / 4), turn.came_s + UNSAID_S)
                in_time = served.reply.status == OK and now_s <= late_s
                self._admission.replied(turn.client, turn.request.robot_id, in_time, now_s)
                self._reply(turn, served)

    def most_waited(self) -> int:
        """Return the longest queue since the last call."""
        most, self._most_waited = self._most_waited, 0
        return most

    def dismiss(self) -> None:
        """Reply to all waiting requests that the service ends.

        Clients cannot delay the end: the number of replies is bounded, and sending stops after
        `DISMISSING_S`.
        """
        end_s = time.monotonic() + DISMISSING_S
        for turn in self._unserved():
            if time.monotonic() < end_s:
                self._send(turn, self._verification.dismissed(turn.request))
        self._waiting = RequestQueue()
        self._in_flight.clear()
        self._clients.close()

    def _unserved(self) -> Iterator[_Turn]:
        """Return the requests that have no reply yet."""
        yield from tuple(self._waiting)
        for _, turns, _ in self._in_flight:
            yield from turns
        for robot, message, header in self._take():
            yield self._turn(robot, message, header)

    def _turn(self, robot: str, message: VerifyDraft.Request, header: object) -> _Turn:
        request = header_of(message)
        client = self._clients.client_of(header) or request.robot_id
        return Turn(request, ReplyTo(self._services[robot], header), time.monotonic(), client)

    def admit(self, robot: str, message: VerifyDraft.Request, sender: object) -> None:
        """Queue a request that arrived at a robot's service, or refuse it; `serve` takes the others.

        Args:
            robot: the name of its service.
            message: unchecked.
            sender: header of the request, rclpy's.
        """
        turn = self._turn(robot, message, sender)
        header, client, now_s = turn.request, turn.client, turn.came_s
        if self._reachable.paused(client):
            return
        refusal = self._admission.over_quota(robot or header.robot_id, now_s, client)
        if refusal is not None:
            reply = self._verification.busy(header, refusal)
            if not refusal.repeated:
                self._send(turn, reply)
            return
        request = from_request(message, header)
        if robot not in ("", request.robot_id):  # it must not take the turn of another robot
            self._reply(turn, self._verification.served(header, _wrong_name(robot, header), now_s))
            return
        turn = replace(turn, request=request)
        turn = turn.with_deadline(self._batch.deadline_s, self._admission.used_s(client, now_s))
        if not self._waiting.has_room(request.robot_id):  # the client with the most requests loses one
            displaced = self._waiting.displace(client)
            if displaced is not None:
                self._refuse(displaced, self._admission.full(len(self._waiting)))
        if not self._waiting.has_room(request.robot_id, turn.image_bytes):
            self._refuse(turn, self._admission.full(len(self._waiting)))
            return
        self._all_held = False
        for overtaken in self._waiting.add(turn):
            self._send(overtaken, self._verification.overtaken(overtaken.request))

    def _take(self) -> Iterator[tuple[str, VerifyDraft.Request, object]]:
        """Take requests from DDS, each with the only robot that may use its service, and its header."""
        for robot, service in self._services.items():
            for _ in range(REQUESTS_KEPT):  # bounded, so that a flood cannot block the service
                request, header = service.handle.service_take_request(VerifyDraft.Request)
                if header is None:
                    break
                yield robot, request, header

    def _refuse(self, turn: _Turn, refusal: Refusal) -> None:
        self._send(turn, self._verification.busy(turn.request, refusal))

    def _reply(self, turn: _Turn, served: Served) -> None:
        self._send(turn, served.reply)
        if served.refusal or served.shared:
            self._served(served.refusal, served.shared)

    def _send(self, turn: _Turn, reply: Reply) -> None:
        """Send a reply, or drop it if it cannot reach its client."""
        service, header = turn.sender
        response = to_reply(reply, time.monotonic() - turn.came_s)
        if not self._reachable.send(turn.client, partial(service.send_response, response, header)):
            self._unheard(turn.request)


def _wrong_name(robot: str, request: Request) -> RequestError:
    message = f"robot_id: {request.robot_id!r}, must be {robot!r} on this service"
    return RequestError(RequestFault.UNKNOWN_ROBOT, message)

# SPDX-License-Identifier: Apache-2.0
"""The requests of a verifier's services by turns: all that wait are looked at before the next are served.

Where the reader of a client does not match, as that of one of another reliability, rmw_fastrtps has whoever
sends it a reply wait for 0.1 s (`max_blocking_time`). Nothing tells before that, so such a client is named.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adahi_msgs.srv import VerifyDraft

from adahi_ros.core.texts import NAME_LENGTH
from adahi_ros.nodes.common.parameters import parameter
from adahi_ros.nodes.common.qos import REQUESTS_KEPT
from adahi_ros.nodes.common.reachable import Clients
from adahi_ros.nodes.common.verifier_messages import from_request, header_of, to_reply
from adahi_ros.nodes.server.outgoing import Outgoing, Sender
from adahi_ros.protocol.request import Reply, Request, RequestError, RequestFault
from adahi_ros.server.admission import Admission
from adahi_ros.server.request_queue import (
    LATEST_S,
    SOONEST_S,
    UNSAID_S,
    WAITING_MOST,
    RequestQueue,
    Turn,
    needed_in_s,
)
from adahi_ros.server.service import InFlight, Served, VerificationService

SIZE = 16
QUOTA_HZ = 100.0
LATE = ("answer", "refuse")
DISMISSING_S = 0.5  # the node may end without having replied to everyone


@dataclass(frozen=True)
class BatchParameters:
    """Which requests are served together, and which are let in."""

    size: int = parameter(SIZE, "Requests of so many robots are verified at once; 1 for one by one", 1, 1024)
    wait_s: float = parameter(
        0.0,
        "So long the first of them waits for others, where there are not so many; what comes while a batch "
        "is verified is in the next one anyway",
        0.0,
        10.0,
    )
    waiting: int = parameter(
        WAITING_MOST, "So many requests wait; another robot's is told to come again (STATUS_BUSY)", 1, 65536
    )
    quota_hz: float = parameter(
        QUOTA_HZ,
        "Requests per second of one robot, and of one client; requests beyond it are refused "
        "(STATUS_BUSY). 0 for any number",
        0.0,
        1e6,
    )
    deadline_s: float = parameter(
        UNSAID_S,
        "How soon a reply is needed where a robot does not say; who needs his first is served first",
        SOONEST_S,
        LATEST_S,
    )
    late: str = parameter(
        "answer",
        "What becomes of a request whose reply was needed before now: answer, for it may serve a robot that "
        "has no plan any more, or refuse, so that it costs no compute (STATUS_BUSY)",
        choices=LATE,
    )


_Taken = tuple[Request, Sender, float]
"""A request, where its reply goes, and when it came."""


class RequestScheduler:
    """Serves a verifier's services in batches; its executor passes one request at a time.

    Attributes:
        services: of the requests.

    Args:
        services: each with the name of the one robot that may ask by it; '' for any.
        verification: replies.
        batch: see there.
        served: told of each request what there is to say of it: a refusal, and that a name is shared.
        unheard: told a request whose reply cannot reach its sender.
        wake: called, by any thread, when something that is verified elsewhere has been.
    """

    def __init__(
        self,
        services: Sequence[tuple[str, Any]],
        verification: VerificationService,
        batch: BatchParameters,
        served: Callable[[str, str], None],
        unheard: Callable[[Any], None],
        wake: Callable[[], object] = lambda: None,
    ) -> None:
        self.services: Sequence[Any] = [service for _, service in services]
        self._robots = [robot for robot, _ in services]
        self._verification = verification
        self._batch = batch
        self._served = served
        self._clients = Clients()
        self._outgoing = Outgoing(unheard)
        self._waiting: RequestQueue[_Taken] = RequestQueue(batch.waiting)
        self._admission = Admission(batch.quota_hz)
        self._most_waited = 0
        self._all_held = False
        self._under_way: list[tuple[InFlight, list[_Taken], float]] = []
        self._wake = wake
        self._refuses_late = batch.late == "refuse"

    def __len__(self) -> int:
        """How many requests wait that were taken from DDS."""
        return len(self._waiting)

    @property
    def wait_s(self) -> float:
        """How long until there is something to serve, if nothing comes; infinite where nothing waits."""
        if any(under_way.begun.done for under_way, _, _ in self._under_way):
            return 0.0
        if not len(self._waiting) or self._all_held:
            return math.inf
        if len(self._waiting) >= self._batch.size:
            return 0.0
        return max(0.0, self._waiting.oldest_s + self._batch.wait_s - time.monotonic())

    def take_in(self, robot: str, request: VerifyDraft.Request, header: Any) -> None:
        """Take a request that came by a robot's service; the rest is taken by `serve`."""
        service = self.services[self._robots.index(robot)]
        self._admit(robot, request, self._sender(service, request, header), time.monotonic())

    def serve(self) -> bool:
        """Serve the requests whose turn it is; return whether there were any."""
        self._take_all()
        if self.wait_s > 0.0:
            return False
        self._finish()
        self._refuse_late()
        turns = self._waiting.take(self._batch.size, self._verification.held())
        self._all_held = not turns
        self._most_waited = max(self._most_waited, len(self._waiting))
        if turns:
            self._begin(turns)
        self._finish()  # what is verified in this process is there by now
        return True

    def _refuse_late(self) -> None:
        """Refuse requests whose replies were needed before now, where that is wanted."""
        if self._refuses_late:
            for request, sender, came_s in self._waiting.take_late(time.monotonic()):
                refusal = self._admission.late(len(self._waiting))
                self._send(request, sender, self._verification.busy(request, refusal), came_s)

    def _begin(self, turns: list[_Taken]) -> None:
        """Have requests verified."""
        begun_s = time.monotonic()
        until_s = begun_s + LATEST_S
        if self._refuses_late:
            unsaid_s = self._batch.deadline_s
            until_s = max(came_s + needed_in_s(request, unsaid_s) for request, _, came_s in turns)
        for under_way in self._verification.begin([request for request, _, _ in turns], until_s):
            taken = [turns[place] for place in under_way.places]
            self._under_way.append((under_way, taken, begun_s))
            under_way.begun.when_done(self._wake)

    def _finish(self) -> None:
        """Reply to the requests that have been verified."""
        done = [each for each in self._under_way if each[0].begun.done]
        for each in done:
            under_way, taken, begun_s = each
            side_by_side = len(self._under_way)
            self._under_way.remove(each)
            now_s = time.monotonic()
            replies = self._verification.finish(under_way, now_s)
            self._verification.spent(len(taken), now_s - begun_s)
            clients = [sender.client for _, sender, _ in taken]
            self._admission.served(clients, (now_s - begun_s) / side_by_side, now_s)
            for (request, sender, came_s), served in zip(taken, replies, strict=True):
                self._reply(request, sender, served, came_s)

    def most_waited(self) -> int:
        """Return how many waited at once while one was served, at most, since this was asked before."""
        most, self._most_waited = self._most_waited, 0
        return most

    def dismiss(self) -> None:
        """Reply to all that wait that they are not served any more; the service is to end.

        Neither clients that continue to send nor ones that are gone can delay the end: it takes no more
        replies than may wait, and gives up after `DISMISSING_S`.
        """
        end_s = time.monotonic() + DISMISSING_S
        for request, sender, came_s in self._unserved():
            if time.monotonic() < end_s:
                self._send(request, sender, self._verification.dismissed(request), came_s)
        self._waiting = RequestQueue()
        for under_way, _, _ in self._under_way:
            self._verification.abandon(under_way)
        self._under_way.clear()
        self._clients.close()

    def _unserved(self) -> Iterator[_Taken]:
        """Return the requests that have no reply yet."""
        for turn in tuple(self._waiting):
            yield turn.item
        for _, taken, _ in self._under_way:
            yield from taken
        for _, message, sender in self._take():
            yield header_of(message), sender, time.monotonic()

    def _take_all(self) -> None:
        """Have the requests wait that have come, as far as they are let in."""
        for robot, message, sender in self._take():
            self._admit(robot, message, sender, time.monotonic())

    def _admit(self, robot: str, message: VerifyDraft.Request, sender: Sender, now_s: float) -> None:
        header, verification, client = header_of(message), self._verification, sender.client
        if self._outgoing.paused(client):
            return
        refusal = self._admission.over_quota(robot or header.robot_id, now_s, client)
        if refusal is not None:
            reply = verification.busy(header, refusal)
            if not refusal.told:
                self._send(header, sender, reply, now_s)
            return
        request = from_request(message)
        if robot not in ("", request.robot_id):  # it must not take the turn of another robot
            (served,) = verification.replies([replace(header, fault=_wrong_name(robot, header))], now_s)
            self._reply(header, sender, served, now_s)
            return
        image_bytes = sum(map(len, request.window.rows.images))
        self._make_room(request.robot_id, client)
        if not self._waiting.has_room(request.robot_id, image_bytes):
            refusal = self._admission.full(len(self._waiting))
            self._send(request, sender, verification.busy(request, refusal), now_s)
            return
        used_s, unsaid_s = self._admission.used_s(client, now_s), self._batch.deadline_s
        turn = Turn.of(request, (request, sender, now_s), now_s, image_bytes, unsaid_s, used_s, client)
        self._all_held = False
        for overtaken, its_sender, came_s in self._waiting.add(turn):
            self._send(overtaken, its_sender, verification.overtaken(overtaken), came_s)

    def _make_room(self, robot_id: str, client: Hashable) -> None:
        """Where as many wait as may, refuse a request of the client that has the most of them."""
        if self._waiting.has_room(robot_id):
            return
        displaced = self._waiting.displace(client)
        if displaced is not None:
            request, sender, came_s = displaced
            refusal = self._admission.full(len(self._waiting))
            self._send(request, sender, self._verification.busy(request, refusal), came_s)

    def _take(self) -> Iterator[tuple[str, VerifyDraft.Request, Sender]]:
        """Take requests from DDS, each with the robot that may ask by its service."""
        for robot, service in zip(self._robots, self.services, strict=True):
            for _ in range(REQUESTS_KEPT):  # no more: who floods is not to keep it from serving
                request, header = service.handle.service_take_request(VerifyDraft.Request)
                if header is None:
                    break
                yield robot, request, self._sender(service, request, header)

    def _sender(self, service: Any, request: VerifyDraft.Request, header: Any) -> Sender:
        client = self._clients.client_of(header) or request.robot_id[: NAME_LENGTH + 1]
        return Sender(service, header, client)

    def _reply(self, request: Request, sender: Sender, served: Served, came_s: float) -> None:
        self._send(request, sender, served.reply, came_s)
        if served.refusal or served.shared:
            self._served(served.refusal, served.shared)

    def _send(self, request: Request, sender: Sender, reply: Reply, came_s: float) -> None:
        self._outgoing.send(request, sender, to_reply(reply, time.monotonic() - came_s))


def _wrong_name(robot: str, request: Request) -> RequestError:
    message = f"robot_id: {request.robot_id!r}, must be {robot!r}, whose service this is"
    return RequestError(RequestFault.UNKNOWN_ROBOT, message)

# SPDX-License-Identifier: Apache-2.0
"""Schedules the requests of a verifier's services: it takes all waiting requests before it serves the next.

If a client's reader does not match, for example because of its reliability, rmw_fastrtps blocks each reply to
it for 0.1 s (`max_blocking_time`). This cannot be detected in advance, so the log names the client.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from adahi_msgs.srv import VerifyDraft

from adahi_ros.nodes.common.deferred_service import DeferredService
from adahi_ros.nodes.common.qos import REQUESTS_KEPT
from adahi_ros.nodes.common.reachable import Clients, ReachableClients
from adahi_ros.nodes.server.robot_messages import from_request, header_of, to_reply
from adahi_ros.protocol.request import Reply, Request, RequestError, RequestFault
from adahi_ros.server.request_queue import Turn
from adahi_ros.server.schedule import BatchParameters, BatchSchedule, Sender
from adahi_ros.server.service import VerificationService


class RequestScheduler(BatchSchedule):
    """Serves a verifier's services in batches; its executor passes one request at a time.

    Args:
        services: of the requests, each by the name of the only robot that may use it; '' for any.
        verification: see `BatchSchedule`.
        batch: likewise.
        served: likewise.
        unheard: called with a request if its reply cannot reach its client.
        wake: see `BatchSchedule`.
        clock: likewise.
    """

    def __init__(
        self,
        services: Mapping[str, Any],
        verification: VerificationService,
        batch: BatchParameters,
        served: Callable[[str, str], None],
        unheard: Callable[[Request], None],
        wake: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(verification, batch, served, wake, clock)
        self._services, self._unheard = services, unheard
        self._clients, self._reachable = Clients(), ReachableClients()

    def serve(self) -> bool:
        """See `BatchSchedule`; first takes what has arrived."""
        for robot, message, header in self._take():
            self.admit(robot, message, header)
        return super().serve()

    def dismiss(self) -> None:
        """See `BatchSchedule`."""
        super().dismiss()
        self._clients.close()

    def _unserved(self) -> Iterator[Turn[Sender]]:
        yield from super()._unserved()
        for robot, message, header in self._take():
            yield self._turn(robot, message, header)

    def _turn(self, robot: str, message: VerifyDraft.Request, header: object) -> Turn[Sender]:
        request = header_of(message)
        client = self._clients.client_of(header) or request.robot_id
        return Turn(request, partial(self._respond, self._services[robot], header), self._clock(), client)

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
        elif robot not in ("", header.robot_id):  # it must not take the turn of another robot
            self._reply(turn, self._verification.served(header, _wrong_name(robot, header), now_s))
        else:
            self._queue(turn, from_request(message, header))

    def _take(self) -> Iterator[tuple[str, VerifyDraft.Request, object]]:
        """Take requests from DDS, each with the only robot that may use its service, and its header."""
        for robot, service in self._services.items():
            for _ in range(REQUESTS_KEPT):  # bounded, so that a flood cannot block the service
                request, header = service.handle.service_take_request(VerifyDraft.Request)
                if header is None:
                    break
                yield robot, request, header

    def _respond(
        self, service: DeferredService, header: object, turn: Turn[Sender], reply: Reply, took_s: float
    ) -> None:
        """Send a reply, or drop it if it cannot reach its client."""
        response = to_reply(reply, self._clock() - turn.came_s)
        if not self._reachable.send(turn.client, partial(service.send_response, response, header)):
            self._unheard(turn.request)


def _wrong_name(robot: str, request: Request) -> RequestError:
    message = f"robot_id: {request.robot_id!r}, must be {robot!r} on this service"
    return RequestError(RequestFault.UNKNOWN_ROBOT, message)

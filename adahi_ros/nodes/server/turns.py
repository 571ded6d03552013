"""The requests of a service by turns: all that wait are looked at before the next is served.

Where the reader of a client does not match, as that of one of another reliability, rmw_fastrtps has whoever
sends it a reply wait for 0.1 s (`max_blocking_time`). Nothing tells before that, so such a client is named.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from adahi_ros.nodes.common.qos import REQUESTS_KEPT
from adahi_ros.nodes.server.serving import heading_of
from adahi_ros.server.waiting import Waiting


class Turns:
    """Serves a verifier's service in the place of its executor, which sees one request at a time.

    Args:
        service: rclpy's; its callback serves a request.
        overtaken: from a request that is not served, because its robot has asked about a later step, to the
            reply that it gets.
        dismissed: the same of one that waits when the service ends.
        unheard: told a request whose reply cannot reach its sender.
    """

    def __init__(
        self,
        service: Any,
        overtaken: Callable[[Any], Any],
        dismissed: Callable[[Any], Any],
        unheard: Callable[[Any], None],
    ) -> None:
        self.service = service
        self.handle = service.handle
        self._overtaken = overtaken
        self._dismissed = dismissed
        self._unheard = unheard
        self._waiting: Waiting[tuple[Any, Any]] = Waiting(REQUESTS_KEPT)
        self._most_waited = 0

    @property
    def ready(self) -> bool:
        """Whether requests wait that were taken from DDS, which tells of them no more."""
        return len(self._waiting) > 0

    def serve(self) -> bool:
        """Serve the request whose turn it is; return whether there was one."""
        while not self._waiting.full:
            request, header = self._take()
            if header is None:
                break
            for overtaken, its_header in self._waiting.add(heading_of(request), (request, header)):
                self._send(overtaken, self._overtaken(overtaken), its_header)
        turn = self._waiting.next()
        if turn is None:
            return False
        self._most_waited = max(self._most_waited, len(self._waiting))
        request, header = turn
        reply = self.service.callback(request, self.service.srv_type.Response())
        self._send(request, reply, header)
        return True

    def most_waited(self) -> int:
        """Return how many waited at once while one was served, at most, since this was asked before."""
        most, self._most_waited = self._most_waited, 0
        return most

    def dismiss(self) -> None:
        """Reply to all that wait that they are not served any more; the service is to end.

        To no more than wait at most: a client that does not cease to ask cannot keep it from ending.
        """
        for _ in range(2 * REQUESTS_KEPT):
            request, header = self._waiting.next() or self._take()
            if header is None:
                break
            self._send(request, self._dismissed(request), header)

    def _take(self) -> tuple[Any, Any]:
        """Take a request from DDS; both are None where none has come."""
        taken: tuple[Any, Any] = self.handle.service_take_request(self.service.srv_type.Request)
        return taken

    def _send(self, request: Any, reply: Any, header: Any) -> None:
        with warnings.catch_warnings(record=True) as told:  # rclpy warns, and goes on
            warnings.simplefilter("always", RuntimeWarning)
            self.service.send_response(reply, header)
        if told:
            self._unheard(request)

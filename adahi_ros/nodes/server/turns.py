"""The requests of a service by turns: all that wait are looked at before the next is served."""

from __future__ import annotations

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
    """

    def __init__(self, service: Any, overtaken: Callable[[Any], Any]) -> None:
        self.service = service
        self.handle = service.handle
        self._overtaken = overtaken
        self._waiting: Waiting[tuple[Any, Any]] = Waiting(REQUESTS_KEPT)

    @property
    def ready(self) -> bool:
        """Whether requests wait that were taken from DDS, which tells of them no more."""
        return len(self._waiting) > 0

    def serve(self) -> bool:
        """Serve the request whose turn it is; return whether there was one."""
        while not self._waiting.full:
            request, header = self.handle.service_take_request(self.service.srv_type.Request)
            if header is None:
                break
            for overtaken, its_header in self._waiting.add(heading_of(request), (request, header)):
                self.service.send_response(self._overtaken(overtaken), its_header)
        turn = self._waiting.next()
        if turn is None:
            return False
        request, header = turn
        reply = self.service.callback(request, self.service.srv_type.Response())
        self.service.send_response(reply, header)
        return True

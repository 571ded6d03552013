# SPDX-License-Identifier: Apache-2.0
"""Sends a verifier's replies; a client that a reply does not reach costs the others little time."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple

from adahi_msgs.srv import VerifyDraft

from adahi_ros.nodes.common.reachable import ReachableClients
from adahi_ros.protocol.request import Request


class Sender(NamedTuple):
    """Where a reply goes.

    Attributes:
        service: rclpy's, which sends it.
        header: rclpy's, of the request.
        client: its GUID, or the robot's name where the middleware shows none.
    """

    service: Any
    header: Any
    client: Hashable


class Outgoing:
    """Sends replies.

    Args:
        unheard: called with a request whose reply was dropped or cannot reach its sender.
    """

    def __init__(self, unheard: Callable[[Request], None]) -> None:
        self._unheard = unheard
        self._reachable = ReachableClients()

    def paused(self, client: Hashable) -> bool:
        """Whether a client gets no reply now, so that its requests are not worth a computation."""
        return self._reachable.paused(client)

    def send(self, request: Request, sender: Sender, response: VerifyDraft.Response) -> None:
        """Send a reply, or drop it."""
        if not self._reachable.send(
            sender.client, partial(sender.service.send_response, response, sender.header)
        ):
            self._unheard(request)

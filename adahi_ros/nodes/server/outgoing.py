# SPDX-License-Identifier: Apache-2.0
"""Sends a verifier's replies; a client that a reply does not reach costs the others little time."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from adahi_msgs.srv import VerifyDraft

from adahi_ros.protocol.request import Request
from adahi_ros.server.unmatched_clients import Unreached


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
        self._unreached = Unreached()

    def paused(self, client: Hashable) -> bool:
        """Whether a client gets no reply now, so that its requests are not worth a computation."""
        return self._unreached.paused(client, time.monotonic())

    def send(self, request: Request, sender: Sender, response: VerifyDraft.Response) -> None:
        """Send a reply, or drop it."""
        begun_s = time.monotonic()
        if not self._unreached.may_send(sender.client, begun_s):
            self._unheard(request)
            return
        with warnings.catch_warnings(record=True) as warned:  # rclpy warns of a timeout and continues
            warnings.simplefilter("always", RuntimeWarning)
            sender.service.send_response(response, sender.header)
        now_s = time.monotonic()
        self._unreached.sent(sender.client, now_s - begun_s, bool(warned), now_s)
        if warned:
            self._unheard(request)

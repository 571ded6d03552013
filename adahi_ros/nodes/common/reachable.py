# SPDX-License-Identifier: Apache-2.0
"""Replies to clients that may not be reachable: rmw_fastrtps blocks each send to such a client for 0.1 s."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from adahi_ros.nodes.common.clients import Clients
from adahi_ros.nodes.common.unmatched_clients import Unreached


class ReachableClients:
    """Sends replies to clients that they reach; the others cost little time."""

    def __init__(self) -> None:
        self._unreached = Unreached()

    def paused(self, client: Hashable) -> bool:
        """Whether a client gets no reply now, because the last one did not reach it."""
        return self._unreached.paused(client, time.monotonic())

    def send(self, client: Hashable, send: Callable[[], object]) -> bool:
        """Send a reply, or drop it; return whether it went out, as far as the middleware knows."""
        begun_s = time.monotonic()
        if not self._unreached.may_send(client, begun_s):
            return False
        with warnings.catch_warnings(record=True) as warned:  # rclpy warns of a timeout and continues
            warnings.simplefilter("always", RuntimeWarning)
            send()
        now_s = time.monotonic()
        self._unreached.sent(client, now_s - begun_s, bool(warned), now_s)
        return not warned


class ServiceReplies:
    """Has rclpy's services send their replies by `ReachableClients`. Requests are served all the same."""

    def __init__(self) -> None:
        self._clients = Clients()
        self._reachable = ReachableClients()

    def guard(self, service: Any) -> None:
        """Have a service send its replies so from now on; to be called again at no cost."""
        if "send_response" not in vars(service):
            service.send_response = partial(self._send, service.send_response)

    def close(self) -> None:
        """Release what it holds; services still send."""
        self._clients.close()

    def _send(self, send: Callable[[Any, Any], object], response: Any, header: Any) -> None:
        client = self._clients.client_of(header)
        if client is None:
            send(response, header)
        else:
            self._reachable.send(client, partial(send, response, header))

# SPDX-License-Identifier: Apache-2.0
"""Limits the delay by unreachable clients: rmw_fastrtps blocks each reply to one for 0.1 s."""

from __future__ import annotations

import os
import struct
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar


class ReachableClients:
    """Sends replies; limits the time lost by clients that they do not reach."""

    def __init__(self) -> None:
        self._unreached = Unreached()

    def paused(self, client: Hashable) -> bool:
        """Whether a client gets no reply now, because the last one did not reach it."""
        return self._unreached.paused(client, time.monotonic())

    def send(self, client: Hashable, send: Callable[[], object]) -> bool:
        """Send a reply, or drop it; return whether it went out, as far as the middleware knows."""
        started_s = time.monotonic()
        if not self._unreached.may_send(client, started_s):
            return False
        with warnings.catch_warnings(record=True) as warned:  # rclpy only warns of a timeout
            warnings.simplefilter("always", RuntimeWarning)
            send()
        now_s = time.monotonic()
        self._unreached.sent(client, now_s - started_s, bool(warned), now_s)
        return not warned


class ServiceReplies:
    """Makes rclpy's services send replies through `ReachableClients`; all requests are served."""

    def __init__(self) -> None:
        self._clients = Clients()
        self._reachable = ReachableClients()

    def guard(self, service: Any) -> None:
        """Make a service send its replies this way; has no effect the second time."""
        if "send_response" not in vars(service):
            service.send_response = partial(self._send, service.send_response)

    def close(self) -> None:
        """Release its resources; services still send."""
        self._clients.close()

    def _send(self, send: Callable[[object, object], object], response: object, header: object) -> None:
        client = self._clients.client_of(header)
        if client is None:
            send(response, header)
        else:
            self._reachable.send(client, partial(send, response, header))


VALUE_AT = 16  # pybind11 keeps the address of an object's value behind CPython's object head
INFO = struct.Struct("qq16sq")  # rmw_service_info_t: source and reception time, GUID, sequence number
ADDRESS = struct.Struct("P")


class Clients:
    """Reads the client's GUID from the header of a request.

    The layout is that of rmw's `rmw_service_info_t`. Python shows three of its fields: if one of them
    differs, or the memory cannot be read, the client is unknown. A wrong address raises an error, but does
    not crash the process, because the kernel reads the memory.
    """

    def __init__(self) -> None:
        try:
            self._memory = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._memory = -1

    def client_of(self, header: Any) -> bytes | None:
        """Return the GUID of the client that sent a request; None where it is unknown."""
        if self._memory < 0 or not hasattr(header, "request_id"):
            return None
        try:
            (address,) = ADDRESS.unpack(os.pread(self._memory, ADDRESS.size, id(header) + VALUE_AT))
            sent, received, guid, sequence = INFO.unpack(os.pread(self._memory, INFO.size, address))
        except (OSError, OverflowError, struct.error):
            return None
        shown = header.source_timestamp, header.received_timestamp, header.request_id.sequence_number
        return guid if (sent, received, sequence) == shown and any(guid) else None

    def close(self) -> None:
        """Release the file."""
        if self._memory >= 0:
            os.close(self._memory)
            self._memory = -1


T = TypeVar("T")

SLOW_S = 0.08  # a longer send has waited for a reader that does not match
FIRST_PAUSE_S, GROWTH, PAUSE_MOST_S = 1.0, 4.0, 60.0
CLIENTS_KEPT = 4096  # of each kind; the oldest is forgotten first
CREDIT_S = 0.3  # longest total block at once by clients that no reply has reached
CREDIT_PER_S = 0.1  # and their share of the time in the long run


class Unreached:
    """Decides which clients get replies.

    A client that blocks a send gets nothing during a pause, which grows each time. Clients that no reply has
    reached yet share a budget of blocked time. A client that a reply has reached always gets replies.
    """

    def __init__(self) -> None:
        self._pauses: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()  # its length and its end
        self._reached: OrderedDict[Hashable, None] = OrderedDict()
        self._credit_s = CREDIT_S
        self._since_s: float | None = None

    def paused(self, client: Hashable, now_s: float) -> bool:
        """Whether a client gets nothing now because it blocked a send."""
        return now_s < self._pauses.get(client, (0.0, now_s))[1]

    def may_send(self, client: Hashable, now_s: float) -> bool:
        """Whether a reply may be sent to a client."""
        if self.paused(client, now_s):
            return False
        if self._since_s is not None:
            gained_s = CREDIT_PER_S * max(0.0, now_s - self._since_s)
            self._credit_s = min(CREDIT_S, self._credit_s + gained_s)
        self._since_s = now_s
        return client in self._reached or self._credit_s > 0.0

    def sent(self, client: Hashable, took_s: float, lost: bool, now_s: float) -> None:
        """Record a send.

        Args:
            client: that the reply is for.
            took_s: how long it took.
            lost: the middleware reported that the reply does not reach the client.
            now_s: after the send, monotonic time.
        """
        if not lost and took_s < SLOW_S:
            self._pauses.pop(client, None)
            _remember(self._reached, client, None)
            return
        self._credit_s -= took_s
        if not lost:  # slow, but the client may have been discovered meanwhile
            return
        self._reached.pop(client, None)
        before_s, _ = self._pauses.get(client, (FIRST_PAUSE_S / GROWTH, 0.0))
        pause_s = min(PAUSE_MOST_S, GROWTH * before_s)
        _remember(self._pauses, client, (pause_s, now_s + pause_s))


def _remember(kept: OrderedDict[Hashable, T], client: Hashable, what: T) -> None:
    kept[client] = what
    kept.move_to_end(client)
    if len(kept) > CLIENTS_KEPT:
        kept.popitem(last=False)

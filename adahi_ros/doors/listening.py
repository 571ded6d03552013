# SPDX-License-Identifier: Apache-2.0
"""A listening socket that bounds what connections cost before anybody knows who they are."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import Any

from adahi_ros.server.admission import Admission

ARRIVALS_HZ = 100.0  # connections per second of one address; more are dropped
UNKNOWN_MOST = 32  # connections without a finished handshake
BACKLOG = 100  # connections that the kernel keeps until they are taken
DROPPED_AT_ONCE = 256  # before other work gets a turn


class BoundedListener(socket.socket):
    """A TCP socket that drops connections of a flood as they arrive.

    Of connections without a finished handshake it keeps the newest `UNKNOWN_MOST`: so idle ones never keep
    others out. It works with asyncio, which takes each connection by `accept`.

    Args:
        address: to listen at.
        port: 0 for any.

    Raises:
        OSError: there is no such address, or the port is in use.
    """

    def __init__(self, address: str, port: int) -> None:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        super().__init__(family, kind, protocol)
        self._arrivals = Admission(ARRIVALS_HZ)
        self._unknown: list[socket.socket] = []
        try:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.bind(place)
            self.listen(BACKLOG)
        except OSError:
            self.close()
            raise

    def accept(self) -> tuple[socket.socket, Any]:
        """See `socket`; returns no connection of a flood.

        Raises:
            BlockingIOError: there is none.
        """
        for _ in range(DROPPED_AT_ONCE):
            connection, address = super().accept()
            if self._arrivals.over_quota(str(address[0]), time.monotonic()) is None:
                self._keep(connection)
                return connection, address
            connection.close()
        raise BlockingIOError

    def _keep(self, connection: socket.socket) -> None:
        self._unknown = [each for each in self._unknown if each.fileno() >= 0]
        if len(self._unknown) >= UNKNOWN_MOST:
            with contextlib.suppress(OSError):  # it is closed
                self._unknown.pop(0).shutdown(socket.SHUT_RDWR)
        self._unknown.append(connection)

    def entered(self, number: int) -> None:
        """Note that the connection with this file descriptor has finished its handshake."""
        self._unknown = [each for each in self._unknown if each.fileno() != number]

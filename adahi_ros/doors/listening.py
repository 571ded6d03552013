# SPDX-License-Identifier: Apache-2.0
"""Bounds on what connections cost, before and after anybody knows who they are."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from adahi_ros.doors.asking import STEPS
from adahi_ros.doors.interface import CONNECTIONS_MOST
from adahi_ros.protocol.request import RequestError, RequestFault
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


class Seats:
    """The places of connections; each has a number that is free, so that names of robots are few.

    Args:
        most: largest number of one client.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: set[tuple[str, int]] = set()
        self._count = 0

    @contextlib.contextmanager
    def taken(self, client: str) -> Iterator[tuple[int, int]]:
        """Take a place for a connection; yields its number, from 0, and that of the connection.

        Raises:
            RequestError: the client, or the door, has too many.
        """
        used = {seat for its, seat in self._taken if its == client}
        for count, most, of_whom in (
            (len(used), self._most, "this client"),
            (len(self._taken), CONNECTIONS_MOST, "all clients"),
        ):
            if count >= most:
                what = f"connections: {count} of {of_whom}, must be below {most} for another one"
                raise RequestError(RequestFault.BUSY, what)
        seat = next(seat for seat in range(len(used) + 1) if seat not in used)
        self._count = (self._count + 1) % STEPS
        self._taken.add((client, seat))
        try:
            yield seat, self._count
        finally:
            self._taken.remove((client, seat))


def of_this_machine(address: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def read_named(field: str, name: str, read: Callable[[Path], Any]) -> Any:
    """Return the content of a file; None without a name.

    Raises:
        ValueError: names the field.
    """
    try:
        return read(Path(name).expanduser()) if name else None
    except (OSError, ValueError) as error:
        raise ValueError(f"{field}: {name!r}, {getattr(error, 'strerror', None) or error}") from None

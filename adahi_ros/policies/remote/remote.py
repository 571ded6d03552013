# SPDX-License-Identifier: Apache-2.0
"""A third-party policy server: connected on request, and left alone for a while after a failure."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from adahi_ros.core.texts import abridged
from adahi_ros.policies.interface import TargetUnavailableError

FIRST_S = 0.1
LONGEST_S = 5.0


class BackOff:
    """A pause after each failure in a row, each twice as long as the previous one."""

    def __init__(self) -> None:
        self._pause_s = 0.0
        self._until_s = 0.0

    def left_s(self, now_s: float) -> float:
        """Return the remaining pause in seconds; 0 without one."""
        return max(0.0, self._until_s - now_s)

    def failed(self, now_s: float) -> None:
        """Start the next pause."""
        self._pause_s = min(LONGEST_S, 2.0 * self._pause_s) or FIRST_S
        self._until_s = now_s + self._pause_s

    def succeeded(self) -> None:
        """Reset: the next failure counts as the first one."""
        self._pause_s = self._until_s = 0.0


LONGEST_ANSWER = 1 << 20  # bytes; a plan of 256 actions of 32 float64 has a sixteenth of it
ERROR_LENGTH = 200

T = TypeVar("T")


class ServerFault(Exception):  # noqa: N818 (it is the server's, not an error of ours)
    """A server's failure to answer, in one line."""


class TimedOut(ServerFault):
    """It does not answer in time; other requests may wait for nothing, too."""


class Connection(Protocol):
    """A connection to a server, for one request at a time."""

    def alive(self) -> bool:
        """Whether it can still be used, as far as known here."""

    def ask(self, message: bytes, timeout_s: float) -> bytes:
        """Return the answer to a message.

        Raises:
            TimedOut: there is none within `timeout_s`; then close the link.
            ServerFault: the connection is gone, or the answer is an error; likewise.
        """

    def close(self) -> None:
        """Close it. A pending answer is dropped."""


class OneRequestConnection:
    """A `Connection` for servers without one: each request is independent, as over HTTP.

    Args:
        request: returns the answer to a message within a timeout in seconds, or raises OSError.
    """

    def __init__(self, request: Callable[[bytes, float], bytes]) -> None:
        self._request = request

    def alive(self) -> bool:
        """See `Connection.alive`."""
        return True

    def ask(self, message: bytes, timeout_s: float) -> bytes:
        """See `Connection.ask`."""
        try:
            return self._request(message, timeout_s)
        except OSError as error:
            raise ServerFault(f"not reachable: {error}") from None

    def close(self) -> None:
        """See `Connection.close`."""


class PolicyServer:
    """Sends requests to a server; connects to it when necessary. Any thread may use it.

    Each request has a connection of its own, so that an answer or a fault concerns no other request. All
    pause after a failed attempt to connect, and after a timeout unless the server answered another meanwhile.

    Args:
        url: of the server, for messages.
        connect: returns a connection within a timeout in seconds, or raises `ServerFault`.
        timeout_s: of a request, including connecting.
        clock: in seconds, only goes forward.
        connections: largest number of requests in flight; further ones wait.
    """

    def __init__(
        self,
        url: str,
        connect: Callable[[float], Connection],
        timeout_s: float,
        clock: Callable[[], float],
        connections: int = 1,
    ) -> None:
        self._url = url
        self._connect = connect
        self._timeout_s = timeout_s
        self._clock = clock
        self._places = threading.BoundedSemaphore(connections)
        self._lock = threading.Lock()  # of all below
        self._idle: list[Connection] = []  # the most recently used last
        self._back_off = BackOff()
        self._fault = ""
        self._answered_s = self._failed_s = -math.inf

    def ask(self, message: bytes, read: Callable[[bytes], T]) -> T:
        """Return the answer to a message.

        Args:
            message: to the server.
            read: parses the answer; raises `ServerFault` where it cannot.

        Raises:
            TargetUnavailableError: there is none; has the reason.
        """
        if not self._places.acquire(timeout=self._timeout_s):
            raise TargetUnavailableError(f"{self._url}: every connection waits for an answer")
        try:
            started_s = self._clock()
            link = self._taken(started_s) or self._connected(started_s)
            return self._asked(link, message, read, started_s)
        finally:
            self._places.release()

    def close(self) -> None:
        """Close all connections without a request; a later request opens a new one."""
        with self._lock:
            idle, self._idle = self._idle, []
        for link in idle:
            link.close()

    def _taken(self, now_s: float) -> Connection | None:
        """Return an open connection without a request; None if there is none.

        Raises:
            TargetUnavailableError: requests pause.
        """
        with self._lock:
            link = None
            while self._idle and link is None:
                link = self._idle.pop()
                if not link.alive():  # closed between requests: no failure, and another server may be there
                    link.close()
                    link = None
            left_s = self._back_off.left_s(now_s)
            if left_s:
                if link is not None:
                    self._idle.append(link)
                raise TargetUnavailableError(f"{self._fault}; next attempt in {left_s:.1f} s")
            return link

    def _connected(self, started_s: float) -> Connection:
        try:
            return self._connect(self._timeout_s)
        except ServerFault as fault:
            raise self._unavailable(fault, started_s, pauses=True) from None

    def _asked(self, link: Connection, message: bytes, read: Callable[[bytes], T], started_s: float) -> T:
        left_s = max(0.0, started_s + self._timeout_s - self._clock())
        usable = False
        try:
            answer = read(link.ask(message, left_s))
            usable = True
        except ServerFault as fault:
            raise self._unavailable(fault, started_s, pauses=isinstance(fault, TimedOut)) from None
        finally:
            if not usable:
                link.close()  # drops a late answer
        with self._lock:
            self._idle.append(link)
            self._answered_s = self._clock()
            self._back_off.succeeded()
        return answer

    def _unavailable(self, fault: ServerFault, started_s: float, pauses: bool) -> TargetUnavailableError:
        """Return the error of a request that began at `started_s`; begin a pause if it is the server's.

        Failures of requests in flight together count once.
        """
        why = f"{self._url}: {fault}"
        with self._lock:
            if pauses and started_s >= max(self._answered_s, self._failed_s):
                self._fault, self._failed_s = why, self._clock()
                self._back_off.failed(self._failed_s)
        return TargetUnavailableError(why)


def error_line(text: str) -> str:
    """Return the most informative line of a server's error: of a traceback the last, else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["nothing"]
    return abridged(lines[-1] if lines[0].startswith("Traceback") else lines[0], ERROR_LENGTH)

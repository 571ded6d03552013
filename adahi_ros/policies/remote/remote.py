# SPDX-License-Identifier: Apache-2.0
"""A policy server of others: reached when it is asked, and left alone for a while after it failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from adahi_ros.core.texts import abridged
from adahi_ros.policies.interface import TargetUnavailableError

FIRST_S = 0.1
LONGEST_S = 5.0


class BackOff:
    """A pause after each failure in a row, each twice as long as the one before."""

    def __init__(self) -> None:
        self._pause_s = 0.0
        self._until_s = 0.0

    def left_s(self, now_s: float) -> float:
        """Return how long is still to be waited, 0 where nothing is."""
        return max(0.0, self._until_s - now_s)

    def failed(self, now_s: float) -> None:
        """Begin the next pause."""
        self._pause_s = min(LONGEST_S, 2.0 * self._pause_s) or FIRST_S
        self._until_s = now_s + self._pause_s

    def succeeded(self) -> None:
        """The next failure is the first one again."""
        self._pause_s = self._until_s = 0.0


LONGEST_ANSWER = 1 << 20  # bytes; a plan of 256 actions of 32 float64 has a sixteenth of it
ERROR_LENGTH = 200

T = TypeVar("T")


class ServerFault(Exception):  # noqa: N818 (it is the server's, not an error of ours)
    """What a server did instead of answering, in a line."""


class Connection(Protocol):
    """A connection to a server, one question after the other."""

    def alive(self) -> bool:
        """Whether it can still be used, as far as is known here."""

    def ask(self, message: bytes, timeout_s: float) -> bytes:
        """Return the answer to a message.

        Raises:
            ServerFault: there is none within `timeout_s`, or none at all; then the link is to be closed.
        """

    def close(self) -> None:
        """Free it. An answer that is still on its way goes nowhere."""


class OneRequestConnection:
    """A `Connection` to a server that needs none: each question is a request of its own, as over HTTP.

    Args:
        request: returns the answer to a message within so many seconds, or raises OSError.
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
    """Asks a server; connects to it where it is not connected.

    Args:
        url: of the server, for messages.
        connect: returns a connection within so many seconds, or raises `ServerFault`.
        timeout_s: of a question, with connecting to ask it.
        clock: in seconds, only goes forward.
    """

    def __init__(
        self, url: str, connect: Callable[[float], Connection], timeout_s: float, clock: Callable[[], float]
    ) -> None:
        self._url = url
        self._connect = connect
        self._timeout_s = timeout_s
        self._clock = clock
        self._link: Connection | None = None
        self._back_off = BackOff()
        self._fault = ""

    def ask(self, message: bytes, read: Callable[[bytes], T]) -> T:
        """Return the answer to a message.

        Args:
            message: to the server.
            read: makes the answer of what came; raises `ServerFault` where it means nothing.

        Raises:
            TargetUnavailableError: there is none; says why.
        """
        begun_s = self._clock()
        if self._link is not None and not self._link.alive():
            self.close()  # it went while nobody asked: that is no failure, and another may be there
        left_s = self._back_off.left_s(begun_s)
        if left_s:
            raise TargetUnavailableError(f"{self._fault}; next attempt in {left_s:.1f} s")
        try:
            if self._link is None:
                self._link = self._connect(self._timeout_s)
            left_s = max(0.0, begun_s + self._timeout_s - self._clock())
            answer = read(self._link.ask(message, left_s))
        except ServerFault as fault:
            self.close()  # whatever it still says is not heard
            self._fault = f"{self._url}: {fault}"
            self._back_off.failed(self._clock())
            raise TargetUnavailableError(self._fault) from None
        self._back_off.succeeded()
        return answer

    def close(self) -> None:
        """Leave the server; a later question connects anew."""
        if self._link is not None:
            self._link.close()
            self._link = None


def error_line(text: str) -> str:
    """Return the line of a server's error that says most: of a traceback the last, else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["nothing"]
    return abridged(lines[-1] if lines[0].startswith("Traceback") else lines[0], ERROR_LENGTH)

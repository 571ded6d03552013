# SPDX-License-Identifier: Apache-2.0
"""A websocket connection to openpi's policy server."""

from __future__ import annotations

import contextlib
import logging
import queue
import socket
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from adahi_ros.policies.remote.remote import LONGEST_ANSWER, ServerFault, TimedOut, error_line

CLOSING_S = 1.0  # for the server's closing handshake, in the background
UNREQUESTED = "sent a message without a request: its answers cannot be matched to requests"
# Connection faults become a `ServerFault`; the library would also log each with a traceback.
_SILENT = logging.Logger(f"{__name__}.library", logging.CRITICAL + 1)


class WebsocketLink:
    """See `Link`. The server sends the first message.

    All blocking calls, such as name resolution or sending to a stalled server, run in a thread, which a
    closed link abandons. So no caller waits longer than its timeout, and late answers are dropped.

    The protocol has no request ids, so a message without a request would shift all later answers. A link that
    receives one, before a request or together with an answer, is unusable. A message that arrives between a
    request and its answer cannot be recognized; the answer that follows it makes the link unusable.

    Args:
        url: such as ws://gpu:8000.
        headers: of the request for a websocket.
        timeout_s: for connecting, and the server's first message.

    Attributes:
        greeting: that message.

    Raises:
        ServerFault: there is no connection.
    """

    def __init__(self, url: str, headers: Mapping[str, str], timeout_s: float) -> None:
        self._questions: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[bytes | str | ServerFault] = queue.SimpleQueue()
        self._connection: Any = None
        self._closed = False
        threading.Thread(
            target=self._converse, args=(url, headers, timeout_s), name=f"asks {url}", daemon=True
        ).start()
        try:
            self.greeting = self._receive(timeout_s, "connected")
        except ServerFault:
            self.close()
            raise

    def alive(self) -> bool:
        """See `Connection.alive`."""
        from websockets.protocol import State

        if self._closed or self._connection.protocol.state is not State.OPEN:
            return False
        if _received(self._connection):
            self.close()
        return not self._closed

    def ask(self, message: bytes, timeout_s: float) -> bytes:
        """See `Connection.ask`."""
        self._questions.put(message)
        return self._receive(timeout_s, "answered")

    def close(self) -> None:
        """See `Connection.close`."""
        self._closed = True
        self._questions.put(None)
        if self._connection is not None:
            with contextlib.suppress(OSError, ValueError):  # it is closed, or closing
                self._connection.socket.shutdown(socket.SHUT_RDWR)  # wakes a blocked reader

    def _receive(self, timeout_s: float, what: str) -> bytes:
        try:
            answer = self._answers.get(timeout=timeout_s)
        except queue.Empty:
            raise TimedOut(f"not {what} for {timeout_s:.2g} s: is still starting, or stalls") from None
        if isinstance(answer, ServerFault):
            raise answer
        if isinstance(answer, str):
            raise ServerFault(f"answered with an error: {error_line(answer)}")
        return answer

    def _converse(self, url: str, headers: Mapping[str, str], timeout_s: float) -> None:
        """Connect, then send requests and receive answers, until there is a fault or no more requests."""
        from websockets.sync.client import connect

        try:
            # Over its own socket the library follows no redirect: headers are for this server alone.
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme == "wss" else 80)
            own = socket.create_connection((parts.hostname, port), timeout_s)
            own.settimeout(None)
            # Without pings: openpi's server answers none while its policy computes.
            with connect(
                url,
                sock=own,
                additional_headers=headers,
                compression=None,
                proxy=None,
                max_size=LONGEST_ANSWER,
                open_timeout=timeout_s,
                ping_interval=None,
                close_timeout=CLOSING_S,
                logger=_SILENT,
            ) as connection:
                self._connection = connection
                self._answers.put(connection.recv())
                while not self._closed:
                    question = self._questions.get()
                    if question is None:
                        break
                    if _received(connection):
                        raise ServerFault(UNREQUESTED)
                    connection.send(question)
                    answer = connection.recv()
                    if not isinstance(answer, str) and _received(connection):  # a text is an error
                        raise ServerFault(UNREQUESTED)
                    self._answers.put(answer)
        except ServerFault as fault:
            self._answers.put(fault)
        except Exception as error:  # noqa: BLE001 (any error means that there is no connection)
            self._answers.put(ServerFault(_fault(error)))


def _received(connection: Any) -> bool:
    """Whether a message is waiting, which this discards; only while no other thread reads."""
    from websockets.exceptions import ConnectionClosed

    try:
        connection.recv(timeout=0.0)
    except (TimeoutError, ConnectionClosed):
        return False
    return True


def _fault(error: Exception) -> str:
    """Return one line about a connection's fault."""
    from websockets.exceptions import ConnectionClosed, InvalidStatus

    if isinstance(error, ConnectionClosed):
        if error.sent is not None and error.sent.code == 1009:
            return f"answered with more than {LONGEST_ANSWER} bytes"
        return "dropped the connection"
    refused = error if isinstance(error, InvalidStatus) else error.__cause__
    if isinstance(refused, InvalidStatus):
        moved = refused.response.headers.get("Location")
        to = (
            f", it redirects to {error_line(moved)}, but only the address in url gets headers"
            if moved
            else ""
        )
        return f"refused the connection: HTTP {refused.response.status_code}{to}"
    if isinstance(error, TimeoutError):
        return "not reachable: no connection in time; is still starting, or stalls"
    if isinstance(error, OSError):
        return f"not reachable: {error.strerror or error}"
    return f"is no policy server: {type(error).__name__}: {error_line(str(error))}"

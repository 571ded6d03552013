"""A server of openpi's kind on this machine, which does what a test says."""

from __future__ import annotations

import contextlib
import http
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgpack
import numpy as np
from websockets.sync import server

READY = threading.Event()
READY.set()


def packed(value: Any) -> bytes:
    """Write a message as openpi's server does."""

    def array(each: np.ndarray) -> dict[bytes, Any]:
        return {b"__ndarray__": True, b"data": each.tobytes(), b"dtype": each.dtype.str, b"shape": each.shape}

    return bytes(msgpack.packb(value, default=array))


def unpacked(message: bytes) -> Any:
    """Read a message as openpi's server does."""

    def array(packed: dict[Any, Any]) -> Any:
        if b"__ndarray__" not in packed:
            return packed
        return np.frombuffer(packed[b"data"], packed[b"dtype"]).reshape(packed[b"shape"])

    return msgpack.unpackb(message, object_hook=array)


def plan_of(observation: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to an observation: 5 actions that tell which it was."""
    arm = observation.get("observation/joint_position", np.zeros(2))
    return {"actions": arm + np.arange(5.0)[:, None], "server_timing": {"infer_ms": 1.0}}


@dataclass
class Serving:
    """What a server does.

    Attributes:
        answer: to an observation: a mapping, or a message as it is.
        metadata: its first message.
        ready: it answers once this is set.
        closes: instead of answering.
        status: of HTTP, instead of a websocket.
        location: of such an answer, which is then a redirect.
        copies: of each answer.
        cuts: whether the answer to an observation ends in the middle, with its connection.
    """

    answer: Callable[[dict[str, Any]], Any] = plan_of
    metadata: Any = field(default_factory=dict)
    ready: threading.Event = READY
    closes: bool = False
    status: http.HTTPStatus | None = None
    location: str = ""
    copies: int = 1
    cuts: Callable[[dict[str, Any]], bool] = lambda observation: False


class PolicyServer:
    """See the module."""

    def __init__(self, does: Serving | None = None, ssl_context: ssl.SSLContext | None = None) -> None:
        self.does = does or Serving()
        self.port = 0
        self.paths: list[str] = []
        self._ssl = ssl_context
        self.received: list[dict[str, Any]] = []
        self.headers: list[Any] = []
        self._server: Any = None
        self._connections: list[Any] = []

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._server = server.serve(
            self._converse,
            "127.0.0.1",
            self.port,
            ssl=self._ssl,
            compression=None,
            process_request=self._request,
        )
        self.port = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.does.ready.set()
        self._server.shutdown()
        self.cut()

    def cut(self) -> None:
        """End all connections."""
        for each in self._connections:
            with contextlib.suppress(OSError):  # it is closed
                each.socket.shutdown(socket.SHUT_RDWR)
        self._connections.clear()

    def say(self, message: Any) -> None:
        """Send a message without a request."""
        self._connections[-1].send(packed(message))

    def _request(self, connection: Any, request: Any) -> Any:
        self.headers.append(request.headers)
        self.paths.append(request.path)
        if self.does.status is None:
            return None
        response = connection.respond(self.does.status, "no\n")
        if self.does.location:
            response.headers["Location"] = self.does.location
        return response

    def _converse(self, connection: Any) -> None:
        self._connections.append(connection)
        first = self.does.metadata
        connection.send(first if isinstance(first, bytes | str) else packed(first))
        for message in connection:
            does = self.does
            observation = unpacked(message)
            self.received.append(observation)
            does.ready.wait(30.0)
            if does.closes:
                return
            answer = does.answer(observation)
            if does.cuts(observation):
                connection.socket.sendall(b"\x82\x7e\x01\x00half")  # a frame of 256 bytes
                connection.socket.shutdown(socket.SHUT_RDWR)
                return
            for _ in range(does.copies):
                connection.send(answer if isinstance(answer, bytes | str) else packed(answer))
            if isinstance(answer, str):
                return

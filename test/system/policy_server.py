"""A policy behind openpi's protocol, served by a test; who imports this is skipped where it cannot be."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

REASON = "pip install -r requirements/remote_targets.txt"
msgpack = pytest.importorskip("msgpack", reason=REASON)
server = pytest.importorskip("websockets.sync.server", reason=REASON)


def read(message: bytes) -> Any:
    """Read a message as openpi's server does."""

    def array(said: dict[Any, Any]) -> Any:
        if b"__ndarray__" not in said:
            return said
        return np.frombuffer(said[b"data"], said[b"dtype"]).reshape(said[b"shape"])

    return msgpack.unpackb(message, object_hook=array)


class PolicyServer:
    """A policy behind openpi's protocol on this machine.

    Args:
        plan_of: from what is observed, by the policy's names, to a plan (T, A) float32.
    """

    def __init__(self, plan_of: Callable[[dict[str, Any]], np.ndarray]) -> None:
        self._plan_of = plan_of
        self.heard: list[dict[str, Any]] = []
        self.port = 0
        self._connections: list[Any] = []

    def start(self) -> None:
        self._server = server.serve(self._converse, "127.0.0.1", self.port, compression=None)
        self.port = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        for each in self._connections:
            with contextlib.suppress(OSError):  # it is closed
                each.socket.shutdown(socket.SHUT_RDWR)
        self._connections.clear()

    def _converse(self, connection: Any) -> None:
        self._connections.append(connection)
        connection.send(msgpack.packb({}))
        for message in connection:
            self.heard.append(read(message))
            plan = self._plan_of(self.heard[-1])
            said = {b"__ndarray__": True, b"data": plan.tobytes(), b"dtype": "<f4", b"shape": plan.shape}
            connection.send(msgpack.packb({"actions": said}))

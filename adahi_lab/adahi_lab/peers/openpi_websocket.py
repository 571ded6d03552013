# SPDX-License-Identifier: Apache-2.0
"""openpi's protocol: numpy arrays in msgpack over a websocket; the draft is part of the observation.

The client is openpi's own, `openpi_client.WebsocketClientPolicy`. Its server is not published as a
package; the one here speaks the same protocol with the same libraries: metadata on connection,
    then for each observation a dictionary of `actions` and `server_timing`, without compression or size
    limit. See `driving.py` for how to run it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import websockets
import websockets.asyncio.server
import websockets.sync.client
from openpi_client import msgpack_numpy
from openpi_client.websocket_client_policy import WebsocketClientPolicy

from adahi_lab.peers.driving import Client, DraftVerifier, peer
from adahi_ros.policies.interface import Policy


class WebsocketServer:
    """Replies to each observation.

    Args:
        reply: returns the reply to an observation.
    """

    def __init__(self, reply: Callable[[dict[str, object]], dict[str, object]]) -> None:
        self._reply = reply

    def serve(self, address: str, port: int, ready: Callable[[], None]) -> None:
        """See `Server.serve`."""
        asyncio.run(self._serve(address, port, ready))

    async def _serve(self, address: str, port: int, ready: Callable[[], None]) -> None:
        async with websockets.asyncio.server.serve(
            self._converse, address, port, compression=None, max_size=None
        ) as server:
            ready()
            await server.serve_forever()

    async def _converse(self, connection: websockets.asyncio.server.ServerConnection) -> None:
        packer = msgpack_numpy.Packer()
        with contextlib.suppress(websockets.ConnectionClosed):  # robots come and go
            await connection.send(packer.pack({}))
            async for message in connection:
                observation = msgpack_numpy.unpackb(message)
                start = time.perf_counter()
                reply = self._reply(observation)
                reply["server_timing"] = {"infer_ms": 1e3 * (time.perf_counter() - start)}
                await connection.send(packer.pack(reply))


def verifying_server(policy: Policy) -> WebsocketServer:
    """Return a server that verifies the draft in each observation."""
    verifier = DraftVerifier(policy)

    def reply(observation: dict[str, Any]) -> dict[str, Any]:
        verdict = verifier.verify(**observation)
        return {"actions": verdict.actions[0], "accepted": verdict.accepted[0]}

    return WebsocketServer(reply)


class ImpatientPolicy(WebsocketClientPolicy):
    """openpi's client with timeouts; by default it waits forever for a reply, and 10 s for a connection."""

    def __init__(self, address: str, port: int, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        super().__init__(address, port)

    def _wait_for_server(self) -> tuple[websockets.sync.client.ClientConnection, dict[str, object]]:
        connection = websockets.sync.client.connect(
            self._uri, compression=None, max_size=None, open_timeout=self._timeout_s
        )
        receive = connection.recv
        connection.recv = lambda: receive(self._timeout_s)
        return connection, msgpack_numpy.unpackb(connection.recv())

    def drop(self) -> None:
        self._ws.close_socket()


class WebsocketClient(Client):
    """Sends observations."""

    failures = (OSError, websockets.WebSocketException)

    def __init__(self, address: str, port: int, timeout_s: float, policy: Policy) -> None:
        self._server = (address, port, timeout_s)
        self._policy: ImpatientPolicy | None = None

    def connect(self) -> None:
        """See `Client.connect`."""
        self._policy = ImpatientPolicy(*self._server)

    def ask(
        self, window: np.ndarray, goal: np.ndarray, codes: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """See `Client.ask`."""
        assert self._policy is not None
        reply = self._policy.infer({"window": window, "goal": goal, "codes": codes, "counts": counts})
        return reply["actions"], reply["server_timing"]["infer_ms"]

    def close(self) -> None:
        """See `Client.close`."""
        if self._policy is not None:
            self._policy.drop()
            self._policy = None


if __name__ == "__main__":
    peer("openpi_websocket", verifying_server, WebsocketClient)

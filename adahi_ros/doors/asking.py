# SPDX-License-Identifier: Apache-2.0
"""Requests of one client, one after another, with patience where the engine is busy."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import NamedTuple

from adahi_ros.doors.interface import Front
from adahi_ros.protocol.request import Reply, Request, RequestFault
from adahi_ros.server.request_queue import Turn
from adahi_ros.server.schedule import Sender

PATIENCE_S = 10.0  # until a client that has to wait gets an error
RETRY_S = 0.01  # where it is unknown when to ask again
STEPS = 1 << 32  # numbers of episodes and steps start again


class Answered(NamedTuple):
    """A reply.

    Attributes:
        reply: the engine's.
        waited_s: since the message came.
        batch_s: how long its batch was computed.
    """

    reply: Reply
    waited_s: float
    batch_s: float


class Asking:
    """A client's way to the engine; used on its event loop.

    Args:
        front: the engine.
        header: of all requests.
        client: that quotas are for.
    """

    def __init__(self, front: Front, header: Request, client: Hashable) -> None:
        self._front, self.header, self._client = front, header, client
        self._future: asyncio.Future[tuple[Reply, float] | None] | None = None
        self._ended = False

    def end(self) -> None:
        """Wait for no reply any more."""
        self._ended = True
        if self._future is not None:
            _resolve(self._future, None)

    async def answer(self, read: Callable[[Request], Request], came_s: float) -> Answered | None:
        """Return the reply to a message; None at the end.

        Args:
            read: returns the request of a header, with a fault where the message is wrong.
            came_s: when the message came.
        """
        step = (self.header.step + 1) % STEPS
        self.header = replace(self.header, step=step, first_step=step)
        while (asked := await self._ask(read)) is not None:
            reply, batch_s = asked
            waited_s = time.monotonic() - came_s
            if reply.status != int(RequestFault.BUSY) or waited_s > PATIENCE_S:
                return Answered(reply, waited_s, batch_s)
            await asyncio.sleep(min(max(RETRY_S, reply.retry_after_s), PATIENCE_S))
        return None

    async def _ask(self, read: Callable[[Request], Request]) -> tuple[Reply, float] | None:
        """Return the engine's reply, and how long its batch was computed, s; None at the end."""
        if self._ended:
            return None
        loop, header = asyncio.get_running_loop(), self.header
        self._future = future = loop.create_future()

        def sent(turn: Turn[Sender], reply: Reply, batch_s: float) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(_resolve, future, (reply, batch_s))

        turn: Turn[Sender] = Turn(header, sent, time.monotonic(), self._client)
        self._front.submit(turn, lambda: read(header))
        return await future


def _resolve(future: asyncio.Future[tuple[Reply, float] | None], result: tuple[Reply, float] | None) -> None:
    if not future.done():
        future.set_result(result)

# SPDX-License-Identifier: Apache-2.0
"""The fleet of `fleet_robot.py` with openpi's server, by openpi's messages over websockets.

    python -m adahi_lab.nodes.openpi_fleet SETTINGS.json RECORDS.json

with openpi's packages on PYTHONPATH (`lab/peers/environments.py`). The first file has the arguments of
`run_robots`; the second is written as by `fleet_robots.py`. Plans, prefetching and lateness are those of our
robots, so that only the servers differ. `peers/openpi_loop.py` has openpi's own client.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
from openpi_client import msgpack_numpy
from websockets.asyncio.client import ClientConnection, connect

from adahi_lab.nodes.fleet_robot import FleetClock, FleetRobot, fleet_wants
from adahi_lab.peers.plan_server import signature_of
from adahi_ros.core.signature import Signature
from adahi_ros.protocol.description import Described, Description
from adahi_ros.protocol.request import OK, Reply, Request
from adahi_ros.protocol.window import WireWindow
from adahi_ros.robot.session import VerifierSession
from adahi_ros.robot.transport import Sent, Transport


class OpenpiTransport(Transport):
    """One robot's `Transport` with a separate connection; replies come in the order of requests.

    Attributes:
        on_arrival: called when there is something to poll.
    """

    next_due_s = math.inf

    def __init__(self, connection: ClientConnection, signature: Signature) -> None:
        self.on_arrival: Callable[[], None] = lambda: None
        self._connection = connection
        self._signature = signature
        self._packer = msgpack_numpy.Packer()
        self._ids = count()
        self._pending: deque[tuple[int, Request]] = deque()
        self._arrived: list[Reply | Described] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._receiving = asyncio.create_task(self._receive())

    @property
    def present(self) -> bool:
        """See `Transport`."""
        return not self._receiving.done()

    def submit(self, request: Request, update: WireWindow) -> Sent:
        """See `Transport`; sends the whole window, because the server keeps none."""
        window = np.frombuffer(request.window.rows.numbers, np.float32).reshape(self._signature.history, -1)
        goal = np.frombuffer(request.window.goal, np.float32)
        sent, message = next(self._ids), self._packer.pack({"window": window, "goal": goal})
        self._pending.append((sent, request))
        task = asyncio.create_task(self._connection.send(message))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        return Sent(sent, len(message))

    def describe(self) -> int:
        """See `Transport`; openpi's server has no description, so the caller's settings replace it."""
        sent = next(self._ids)
        self._arrived.append(Described(sent, Description("openpi", "replace", self._signature)))
        return sent

    def poll(self) -> list[Reply | Described]:
        """See `Transport`."""
        arrived, self._arrived = self._arrived, []
        return arrived

    def cancel(self, sent: int) -> None:
        """See `Transport`; the server still computes it."""

    async def _receive(self) -> None:
        async for message in self._connection:
            assert isinstance(message, bytes)
            reply = msgpack_numpy.unpackb(message)
            sent, request = self._pending.popleft()
            actions = reply["actions"][request.ahead :].ravel()
            compute_ms = reply["server_timing"]["infer_ms"]
            self._arrived.append(
                Reply(OK, "", *request.about, (), actions, compute_ms, id=sent, size_bytes=len(message))
            )
            self.on_arrival()


def _poll(robot: FleetRobot) -> None:
    robot.poll(time.monotonic())


async def run_robots(
    address: str,
    port: int,
    target: str,
    robots: int,
    rate_hz: float,
    seconds: float,
    every: int,
    grace_s: float,
    seed: int,
) -> list[dict[str, object]]:
    """Let robots send requests for a time; return their records.

    Args:
        address: of the server.
        port: of the server.
        target: DIRECTORY/NAME of the server's policy.
        robots: how many.
        rate_hz: of their control.
        seconds: how long.
        every: see `FleetRobot`; 0 for half of the target's plan.
        grace_s: see `FleetRobot`.
        seed: of their walks.
    """
    signature = signature_of(target)
    every = every or max(1, signature.horizon // 2)
    async with AsyncExitStack() as stack:
        fleet = []
        for number in range(robots):
            connecting = connect(f"ws://{address}:{port}", compression=None, max_size=None)
            connection = await stack.enter_async_context(connecting)
            await connection.recv()  # the server's metadata
            transport = OpenpiTransport(connection, signature)
            session = VerifierSession(transport, fleet_wants(signature), False, lambda: None)
            session.start(time.monotonic())
            robot = FleetRobot(session, 1.0 / rate_hz, every, grace_s, seed + number)
            transport.on_arrival = partial(_poll, robot)
            fleet.append(robot)
        started_s = time.monotonic()
        clock = FleetClock(fleet, rate_hz, started_s)
        while (now_s := time.monotonic()) < started_s + seconds:
            clock.go_on(now_s)
            await asyncio.sleep(max(0.0, clock.next_s - time.monotonic()))
        return [robot.end().plain() for robot in fleet]


if __name__ == "__main__":
    wanted, records = map(Path, sys.argv[1:])
    records.write_text(json.dumps(asyncio.run(run_robots(**json.loads(wanted.read_text())))))

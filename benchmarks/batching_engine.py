# SPDX-License-Identifier: Apache-2.0
"""Replies per second of a policy server that batches by itself, over one connection and over one per robot.

    .venv/bin/python benchmarks/batching_engine.py compare [--robots 1,4,16] [--engines batching,serial]

Robots send their next request when they have the reply, over DDS, to a verifier's node whose target is behind
a server of openpi's protocol. The engine `batching` computes 40 ms for up to 16 requests. It begins when that
many wait, or the first one has waited for --delay-ms. `serial` computes them one by one, on its event loop,
as openpi's server does. `openpi` is openpi's own serving code, which must be on PYTHONPATH. All processes
share this machine. Prints figures; asserts nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import rclpy
import typer
import yaml
from rclpy.node import Node
from rich.console import Console
from rich.table import Table

from adahi_lab.nodes.domain import exclusive_domain, loopback_environment
from adahi_ros.client import VerifierClient, VerifierError
from adahi_ros.nodes.launching.child_processes import node_processes
from adahi_ros.policies.remote.packed_arrays import pack_openpi, unpack_openpi

SIZE = 7  # numbers of an observation and of an action
HORIZON = 16
WARM_S = 1.0
DEADLINE_S = 10.0

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def plan_of(observation: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to an observation: every action is the state."""
    return {"actions": np.tile(observation["observation/state"], (HORIZON, 1))}


class BatchingEngine:
    """Computes batches of the requests that wait.

    Args:
        most: of a batch.
        compute_s: for a batch of any size.
        delay_s: how long a batch waits for more requests.
    """

    def __init__(self, most: int, compute_s: float, delay_s: float) -> None:
        self._most, self._compute_s, self._delay_s = most, compute_s, delay_s
        self._waiting: asyncio.Queue[tuple[Any, asyncio.Future[Any]]] = asyncio.Queue()

    async def run(self) -> None:
        """Compute until cancelled."""
        while True:
            batch = [await self._waiting.get()]
            until_s = time.monotonic() + self._delay_s
            while len(batch) < self._most:
                left_s = max(0.0, until_s - time.monotonic())
                if self._waiting.empty() and not left_s:
                    break
                with suppress(asyncio.TimeoutError):
                    batch.append(await asyncio.wait_for(self._waiting.get(), left_s or None))
            await asyncio.sleep(self._compute_s)
            for observation, answered in batch:
                answered.set_result(plan_of(observation))

    async def infer(self, observation: Any) -> Any:
        """Return the answer to an observation."""
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        await self._waiting.put((observation, answered))
        return await answered


class SerialEngine:
    """Computes one request after another, and blocks its event loop meanwhile, as openpi's server does."""

    def __init__(self, compute_s: float) -> None:
        self._compute_s = compute_s

    def infer_now(self, observation: Any) -> Any:
        """Return the answer to an observation, after the time that it takes."""
        time.sleep(self._compute_s)
        return plan_of(observation)

    async def infer(self, observation: Any) -> Any:
        """See `infer_now`."""
        return self.infer_now(observation)


@app.command()
def serve(engine: str, port: int, most: int, compute_ms: float, delay_ms: float) -> None:
    """Serve a policy on this machine."""
    serial = SerialEngine(compute_ms / 1e3)
    if engine == "openpi":
        from openpi.serving.websocket_policy_server import WebsocketPolicyServer

        policy = type("Policy", (), {"infer": staticmethod(serial.infer_now)})()
        WebsocketPolicyServer(policy, "127.0.0.1", port, {}).serve_forever()
    else:
        batching = BatchingEngine(most, compute_ms / 1e3, delay_ms / 1e3)
        asyncio.run(_serve(batching if engine == "batching" else serial, port))


async def _serve(engine: BatchingEngine | SerialEngine, port: int) -> None:
    import websockets
    from websockets.asyncio.server import ServerConnection
    from websockets.asyncio.server import serve as serve_websockets

    async def converse(connection: ServerConnection) -> None:
        with suppress(websockets.ConnectionClosed):
            await connection.send(pack_openpi({}))
            async for message in connection:
                await connection.send(pack_openpi(await engine.infer(unpack_openpi(bytes(message)))))

    computing = asyncio.create_task(engine.run()) if isinstance(engine, BatchingEngine) else None
    async with serve_websockets(converse, "127.0.0.1", port, compression=None) as server:
        await server.serve_forever()
    del computing


class Robot:
    """Sends its next request when it has the reply.

    Args:
        node: of all robots.
        number: names it.
    """

    def __init__(self, node: Node, number: int) -> None:
        self.round_trips_ms: list[float] = []
        self.failed = 0
        self._client = VerifierClient(node, f"r{number}", reliability="reliable", deadline_s=DEADLINE_S)
        self._window = np.full((1, SIZE), number, np.float32)

    async def find(self) -> None:
        """Wait for the verifier."""
        for _ in range(60):
            with suppress(VerifierError):
                await self._client.describe()
                await self._client.ask(self._window)
                return
        raise TimeoutError("no verifier in 60 attempts")

    async def drive(self, from_s: float, until_s: float) -> None:
        """Send requests until a time; count replies from a time on."""
        step = 0
        while time.monotonic() < until_s:
            step += 1
            try:
                answer = await self._client.ask(self._window, step=step)
            except VerifierError:
                self.failed += 1
                continue
            if not (answer.actions == self._window[0, 0]).all():
                raise RuntimeError("a robot got another robot's plan")
            if from_s <= time.monotonic() < until_s:
                self.round_trips_ms.append(answer.round_trip_ms)


@app.command()
def drive(robots: int, seconds: float) -> None:
    """Send requests, at the robots' end, and print the replies."""
    rclpy.init()
    node = Node("robots", use_global_arguments=False)
    executor = rclpy.executors.SingleThreadedExecutor()
    executor.add_node(node)
    fleet = [Robot(node, number) for number in range(robots)]
    _completed(executor, [executor.create_task(each.find) for each in fleet])
    from_s = time.monotonic() + WARM_S
    _completed(executor, [executor.create_task(each.drive, from_s, from_s + seconds) for each in fleet])
    trips = [trip for each in fleet for trip in each.round_trips_ms]
    found = {"replies_per_s": len(trips) / seconds, "failed": sum(each.failed for each in fleet)}
    p50, p99 = np.percentile(trips, [50, 99]) if trips else (np.nan, np.nan)
    print(json.dumps({**found, "p50_ms": float(p50), "p99_ms": float(p99)}), flush=True)
    os._exit(0)  # rclpy's own end takes a second per run


def _completed(executor: rclpy.executors.Executor, tasks: list[Any]) -> None:
    for task in tasks:
        executor.spin_until_future_complete(task)
        task.result()


@app.command()
def compare(
    robots: Annotated[str, typer.Option(help="How many, separated by commas.")] = "1,4,16",
    connections: Annotated[str, typer.Option(help="Of the target, separated by commas.")] = "1,16",
    engines: Annotated[str, typer.Option(help="batching, serial, openpi.")] = "batching,serial",
    most: Annotated[int, typer.Option(help="Requests of a batch.")] = 16,
    compute_ms: Annotated[float, typer.Option(help="Of a batch.")] = 40.0,
    delay_ms: Annotated[float, typer.Option(help="That a batch waits for more.")] = 0.0,
    seconds: Annotated[float, typer.Option(help="Of each run.")] = 5.0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write figures there.")] = None,
) -> None:
    """Print replies per second, and how many times those of the first number of connections they are."""
    found = []
    for engine in engines.split(","):
        for count in map(int, robots.split(",")):
            first = 0.0
            for pool in map(int, connections.split(",")):
                measured = _measure(engine, count, pool, (most, compute_ms, delay_ms), seconds)
                first = first or measured["replies_per_s"]
                ratio = measured["replies_per_s"] / first
                found.append(
                    {"engine": engine, "robots": count, "connections": pool, **measured, "ratio": ratio}
                )
    table = Table("engine", "robots", "connections", "replies/s", "ratio", "p50 ms", "p99 ms", "failed")
    for each in found:
        figures = (f"{each[name]:.1f}" for name in ("replies_per_s", "ratio", "p50_ms", "p99_ms"))
        names = (str(each[name]) for name in ("engine", "robots", "connections"))
        table.add_row(*names, *figures, str(each["failed"]))
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps(found, indent=1) + "\n")


def _measure(
    engine: str, robots: int, connections: int, batch: tuple[int, float, float], seconds: float
) -> dict[str, Any]:
    with (
        _engine(engine, batch) as port,
        TemporaryDirectory() as folder,
        exclusive_domain() as domain,
    ):
        target = Path(folder) / "target.yaml"
        target.write_text(yaml.safe_dump(_target_file(port, connections)))
        parameters: dict[str, Any] = {
            "checkpoint": str(target),
            "batch.size": batch[0],
            "batch.quota_hz": 0.0,
        }
        parameters["verification.reliability"] = "reliable"
        environment = loopback_environment(domain)
        with node_processes(environment) as processes:
            processes.start("target_verifier_node", parameters)
            driven = subprocess.run(
                [sys.executable, __file__, "drive", str(robots), str(seconds)],
                env={**os.environ, **environment},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
    figures: dict[str, Any] = json.loads(driven.stdout)
    return figures


def _target_file(port: int, connections: int) -> dict[str, Any]:
    return {
        "kind": "openpi",
        "url": f"ws://127.0.0.1:{port}",
        "timeout_s": 5.0,
        "connections": connections,
        "horizon": HORIZON,
        "action_names": [f"positions.joint{number}" for number in range(SIZE)],
        "state": {"observation": {"size": SIZE, "as": "observation/state"}},
    }


def free_port() -> int:
    """Return a port of this machine that nothing listens at."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextmanager
def _engine(engine: str, batch: tuple[int, float, float]) -> Iterator[int]:
    """Yield the port of a policy server while it runs."""
    port = free_port()
    given = [engine, str(port), *map(str, batch)]
    server = subprocess.Popen([sys.executable, __file__, "serve", *given])
    try:
        until_s = time.monotonic() + 60.0
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1.0).close()
                break
            except OSError:
                if time.monotonic() > until_s or server.poll() is not None:
                    raise
                time.sleep(0.05)
        yield port
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    app()

# SPDX-License-Identifier: Apache-2.0
"""Replies per second to clients of openpi's protocol: by our door, and by openpi's own server.

    export PYTHONPATH=$(.venv/bin/python -m adahi_lab.peers.environments openpi_websocket):OPENPI/src
    .venv/bin/python benchmarks/openpi_door.py compare [--clients 1,16] [--servers openpi,door,verifier]

OPENPI is a checkout of Physical-Intelligence/openpi. All serve the same policy, ball/plans/target, which
takes 40 ms more for a batch of any size. `door` is that of `adahi serve openpi`, `verifier` the node's. Each
client is openpi's own, in a process; it sends its next observation, with an image that the policy does not
read, when it has the answer. All processes share this machine. Prints figures; asserts nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from batching_engine import free_port
from rich.console import Console
from rich.table import Table

from adahi_lab.nodes.domain import exclusive_domain, loopback_environment
from adahi_ros.core.assets import CHECKPOINTS, asset
from adahi_ros.doors.alone import serve_alone, target_of
from adahi_ros.doors.openpi import OpenPiDoor
from adahi_ros.nodes.launching.child_processes import node_processes
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.slowed import SlowedPolicy
from adahi_ros.server.schedule import BatchParameters

TARGET = "ball/plans/target"
WARM_S = 2.0
WAIT_S = 0.005

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def slowed(compute_s: float) -> SlowedPolicy:
    return SlowedPolicy(load_policy(asset(CHECKPOINTS) / TARGET, "onnxruntime"), compute_s, time.sleep)


@app.command()
def serve(server: str, port: int, compute_ms: float) -> None:
    """Serve the policy on this machine."""
    policy = slowed(compute_ms / 1e3)
    if server == "door":
        batch = BatchParameters(quota_hz=0.0, wait_s=WAIT_S)
        serve_alone(OpenPiDoor(port=port), [target_of(policy, TARGET)], batch, print)
        return
    from openpi.serving.websocket_policy_server import WebsocketPolicyServer

    draws = np.random.default_rng(0)

    def infer(observation: dict[str, Any]) -> dict[str, Any]:
        window, goal = observation["observation"][None], observation["goal"][None]
        seen = policy.signature.observations(window, goal)
        return {"actions": policy.propose(seen, draws.random((1, policy.draws))).actions[0]}

    answering = type("Policy", (), {"infer": staticmethod(infer)})()
    WebsocketPolicyServer(answering, "127.0.0.1", port, {}).serve_forever()


@app.command()
def drive(port: int, seconds: float) -> None:
    """Send observations as one client; print the times of its answers."""
    from openpi_client.websocket_client_policy import WebsocketClientPolicy

    signature = load_policy(asset(CHECKPOINTS) / TARGET, "onnxruntime").signature
    client = WebsocketClientPolicy("127.0.0.1", port)
    seen = {
        "observation": np.zeros((signature.history, signature.observation_dim), np.float32),
        "goal": np.zeros(signature.goal_dim, np.float32),
        "observation/image": np.zeros((96, 96, 3), np.uint8),
    }
    print("ready", flush=True)
    sys.stdin.readline()
    from_s = time.monotonic() + WARM_S
    until_s, times_ms = from_s + seconds, []
    while (sent_s := time.monotonic()) < until_s:
        client.infer(seen)
        if sent_s >= from_s:
            times_ms.append(1e3 * (time.monotonic() - sent_s))
    print(json.dumps(times_ms))


@contextmanager
def serving(server: str, compute_ms: float) -> Iterator[int]:
    """Yield the port of a server while it runs."""
    port = free_port()
    if server == "verifier":
        parameters = {
            "checkpoint": TARGET,
            "added_compute_s": compute_ms / 1e3,
            "doors.openpi.port": port,
            "batch.quota_hz": 0.0,
            "batch.wait_s": WAIT_S,
        }
        with exclusive_domain() as domain, node_processes(loopback_environment(domain)) as processes:
            processes.start("target_verifier_node", parameters)
            yield port
        return
    process = subprocess.Popen([sys.executable, __file__, "serve", server, str(port), str(compute_ms)])
    try:
        yield port
    finally:
        process.terminate()
        process.wait()


def measured(server: str, clients: int, compute_ms: float, seconds: float) -> dict[str, Any]:
    """Return the figures of one run."""
    with serving(server, compute_ms) as port, ExitStack() as stack:
        _await_port(port)
        command = [sys.executable, __file__, "drive", str(port), str(seconds)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        driving = [stack.enter_context(subprocess.Popen(command, text=True, **pipes)) for _ in range(clients)]
        for each in driving:
            each.stdout.readline()
        for each in driving:
            each.stdin.write("\n")
            each.stdin.flush()
        times_ms = [time_ms for each in driving for time_ms in json.loads(each.communicate()[0])]
    p50, p99 = np.percentile(times_ms, [50, 99])
    return {"replies_per_s": len(times_ms) / seconds, "p50_ms": float(p50), "p99_ms": float(p99)}


def _await_port(port: int) -> None:
    import socket

    until_s = time.monotonic() + 60.0
    while time.monotonic() < until_s:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        time.sleep(0.05)
    raise TimeoutError(f"port: {port}, nothing listens there")


@app.command()
def compare(
    clients: Annotated[str, typer.Option(help="How many, separated by commas.")] = "1,16",
    servers: Annotated[str, typer.Option(help="Separated by commas.")] = "openpi,door,verifier",
    compute_ms: Annotated[float, typer.Option(help="Of a batch, besides the policy's own.")] = 40.0,
    seconds: Annotated[float, typer.Option(help="Of each run.")] = 10.0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write figures there.")] = None,
) -> None:
    """Print replies per second, and how many times those of the first server they are."""
    found = []
    for count in map(int, clients.split(",")):
        first = 0.0
        for server in servers.split(","):
            figures = measured(server, count, compute_ms, seconds)
            first = first or figures["replies_per_s"]
            found.append(
                {"clients": count, "server": server, **figures, "ratio": figures["replies_per_s"] / first}
            )
    table = Table("clients", "server", "replies/s", "ratio", "p50 ms", "p99 ms")
    for each in found:
        figures = [f"{each[name]:.1f}" for name in ("replies_per_s", "ratio", "p50_ms", "p99_ms")]
        table.add_row(str(each["clients"]), each["server"], *figures)
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    app()

# SPDX-License-Identifier: Apache-2.0
"""What SROS 2 costs: round trips and bytes on the wire, without security and with it, in turns.

    python -m adahi_lab.papers.s3ml.cost_table compare [--rounds N]

Calls of a service that does nothing, by the keys, the interface and with the needs of `table.py`.
Prints milliseconds and bytes; asserts nothing.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import typer
from adahi_msgs.srv import VerifyDraft
from rclpy.node import Node
from rich.table import Table

from adahi_lab.papers.s3ml.loopback import stage, watched
from adahi_lab.papers.s3ml.table import (
    DEADLINE_S,
    MARK,
    OFF,
    PERIOD_S,
    Part,
    console,
    keys,
    make_keys,
    node_of,
    report,
)
from adahi_ros.nodes.common.executors import executor_of
from adahi_ros.nodes.common.qos import verify_qos

COLUMNS = ("request, bytes", "security", "p50, ms", "p95, ms", "lost", "calls", "payload per call, bytes")
SIZES = (1_000, 20_000, 200_000)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(hidden=True)
def be(role: str, robot: str, namespace: str, seconds: float = 1e6, size: int = 0) -> None:
    """Play a part in the domain for so long, and print what came of it."""
    node = node_of(robot, namespace)
    report(echoes(node, seconds) if role == "echo" else drives(node, seconds, size))


def echoes(node: Node, seconds: float) -> dict[str, Any]:
    """Reply at once, for the cost alone."""
    node.create_service(
        VerifyDraft, "verify_draft", lambda request, response: response, qos_profile=verify_qos("best_effort")
    )
    executor = executor_of(node)
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        executor.spin_once(0.1)
    return {}


def drives(node: Node, seconds: float, size: int) -> dict[str, Any]:
    """Call with requests of this size; `begin` says that calls count from now on."""
    client = node.create_client(VerifyDraft, "verify_draft", qos_profile=verify_qos("best_effort"))
    executor = executor_of(node)
    if not client.wait_for_service(20.0):
        raise SystemExit("no service after 20 s")
    request = VerifyDraft.Request(observation_window=array("f", bytes(size - size % 4)))
    took_ms, lost = list[float](), 0
    begin_s = time.monotonic() + 1.0
    counted = False
    while time.monotonic() < begin_s + seconds:
        start_s = time.monotonic()
        if not counted and start_s > begin_s:
            print("begin", flush=True)
            took_ms, lost, counted = [], 0, True
        future = client.call_async(request)
        while not future.done() and time.monotonic() < start_s + DEADLINE_S:
            executor.spin_once(start_s + DEADLINE_S - time.monotonic())
        took_ms.append(1e3 * (time.monotonic() - start_s))
        lost += not future.done()
        client.remove_pending_request(future)
        while (left_s := start_s + PERIOD_S - time.monotonic()) > 0.0:
            executor.spin_once(left_s)
    return {"took_ms": took_ms, "lost": lost}


@app.command("compare")
def cost(
    rounds: Annotated[int, typer.Option(min=1, help="Of each, in turns.")] = 3,
    seconds: Annotated[float, typer.Option(min=1.0, help="Of a round.")] = 10.0,
) -> None:
    """Time calls of a service that does nothing, and count bytes, without security and with it, in turns."""
    taken: dict[str, dict[int, list[dict[str, Any]]]] = {}
    with stage() as (domain, folder):
        _, machines = make_keys(folder / "keys", ["r1"])
        kinds = {
            "off": (OFF, OFF),
            "on": (keys(machines / "server", "/adahi/server"), keys(machines / "r1", "/adahi/r1")),
        }
        for _ in range(rounds):
            for size in SIZES:
                for kind, (server, robot) in kinds.items():
                    drove = _drive(domain, server, robot, seconds, size)
                    taken.setdefault(kind, {}).setdefault(size, []).append(drove)
    table = Table(*COLUMNS)
    for size in SIZES:
        for kind, by_size in taken.items():
            made = by_size[size]
            took_ms = [each for round_ in made for each in round_["took_ms"]]
            p50, p95 = np.percentile(took_ms, (50, 95))
            payload = sum(round_["payload"] for round_ in made) / len(took_ms)
            lost = sum(round_["lost"] for round_ in made)
            row = (f"{size:,}", kind, f"{p50:.2f}", f"{p95:.2f}", lost, len(took_ms), f"{payload:,.0f}")
            table.add_row(*map(str, row))
    console.print(table)


def _drive(
    domain: int, server: Mapping[str, str], robot: Mapping[str, str], seconds: float, size: int
) -> dict[str, Any]:
    options = ("--seconds", str(seconds), "--size", str(size))
    with watched(domain, MARK) as wire:
        echo = Part("echo", "r1", "server", server, program="adahi_lab.papers.s3ml.cost_table")
        drive = Part("drive", "r1", "r1", robot, *options, program="adahi_lab.papers.s3ml.cost_table")
        drive.line()  # begin
        before = wire.payload
        found = drive.end()
        payload = wire.payload - before
        echo.kill()
    return {**found, "payload": payload}


if __name__ == "__main__":
    app()

# SPDX-License-Identifier: Apache-2.0
"""Costs of a fleet's replies if all robots share the verifier's service, and if each has its own.

    .venv/bin/python benchmarks/own_services.py compare --robots 1,4,16 [--json FILE]

The reader of every client of a ROS service receives all replies of that service, and ignores other clients'
replies (github.com/ros2/rmw_fastrtps/issues/559). Robots are participants of their own here, at one end of an
emulated link, in one process; the verifier is at the other. Counted is what the interface of the robots' end
received. Prints figures; asserts nothing.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import rclpy
import typer
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from rclpy.utilities import try_shutdown
from rich.console import Console
from rich.table import Table

from adahi_lab.bench.link_ends import dds_environment
from adahi_lab.link.emulator import emulated_link
from adahi_lab.link.link_profile import profile_named
from adahi_lab.nodes.domain import exclusive_domain, link_environment
from adahi_ros.client import VerifierClient, VerifierError
from adahi_ros.nodes.launching.child_processes import node_processes

LINK = "wired"
DISCOVERY_S = 60.0

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Robot:
    """A participant that asks, one request at a time."""

    def __init__(self, domain: int, number: int, own: bool) -> None:
        self.replies = 0
        self.lost = 0
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        name = f"r{number}"
        namespace = f"/{name}" if own else "/"
        self._node = Node(name, context=self._context, namespace=namespace, use_global_arguments=False)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._client = VerifierClient(self._node, name)
        self._pending: Future | None = None
        self._step = 0

    def find(self) -> None:
        """Wait for the verifier, and ask what it is."""
        limit_s = time.monotonic() + DISCOVERY_S
        while time.monotonic() < limit_s:
            described = self._executor.create_task(_or_none, self._client.describe)
            self._executor.spin_until_future_complete(described, timeout_sec=DISCOVERY_S)
            if described.result() is not None:
                signature = described.result().signature
                self._window = np.zeros((signature.history, signature.observation_dim), np.float32)
                self._goal = np.zeros(signature.goal_dim, np.float32)
                return
        raise TimeoutError(f"no verifier in {DISCOVERY_S:g} s")

    def ask(self) -> None:
        """Send a request, unless one is on its way."""
        if self._pending is not None:
            return
        self._step += 1
        ask = partial(self._client.ask, self._window, self._goal, step=self._step)
        self._pending = self._executor.create_task(_or_none, ask)

    def spin(self) -> None:
        """Take what has come."""
        self._executor.spin_once(0.0)
        if self._pending is not None and self._pending.done():
            lost = self._pending.result() is None
            self.replies, self.lost, self._pending = self.replies + (not lost), self.lost + lost, None

    def close(self) -> None:
        """Leave the domain."""
        self._executor.shutdown(timeout_sec=1.0)
        self._node.destroy_node()
        try_shutdown(context=self._context)


async def _or_none(call: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await call()
    except VerifierError:
        return None


@app.command()
def drive(domain: int, robots: int, own: bool, rate: float, seconds: float) -> None:
    """Ask, at the robots' end, and print what came of it."""
    fleet = [Robot(domain, number, own) for number in range(robots)]
    for robot in fleet:
        robot.find()
    before = _received()
    due_s = [time.monotonic() + number / (robots * rate) for number in range(robots)]
    end_s = time.monotonic() + seconds
    while (now_s := time.monotonic()) < end_s:
        for number, robot in enumerate(fleet):
            if due_s[number] <= now_s:
                due_s[number] += 1.0 / rate
                robot.ask()
            robot.spin()
    received = _received() - before
    replies, lost = sum(robot.replies for robot in fleet), sum(robot.lost for robot in fleet)
    for robot in fleet:
        robot.close()
    print(json.dumps({"replies": replies, "lost": lost, "bytes_per_reply": received / max(1, replies)}))


@app.command()
def compare(
    robots: Annotated[str, typer.Option(help="How many, separated by commas.")] = "1,4,16",
    checkpoint: Annotated[str, typer.Option(help="Of the target.")] = "kitchen/plans/target",
    rate: Annotated[float, typer.Option(help="Requests per second of each.")] = 4.0,
    seconds: Annotated[float, typer.Option(help="Of each run.")] = 10.0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write figures there.")] = None,
) -> None:
    """Print what a reply costs, by how many robots there are."""
    found = [
        _measure(checkpoint, int(count), own, rate, seconds)
        for count, own in itertools.product(robots.split(","), (False, True))
    ]
    table = Table("robots", "services", "replies", "lost", "bytes received per reply")
    for each in found:
        services = "own" if each["own"] else "shared"
        counts = (str(each[name]) for name in ("replies", "lost"))
        table.add_row(str(each["robots"]), services, *counts, f"{each['bytes_per_reply']:.0f}")
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps(found, indent=1))


def _measure(checkpoint: str, robots: int, own: bool, rate_hz: float, seconds: float) -> dict[str, Any]:
    parameters: dict[str, Any] = {"checkpoint": checkpoint, "rule.name": "replace"}
    if own:
        parameters["robots"] = [f"r{number}" for number in range(robots)]
    with emulated_link(profile_named(LINK), 0) as link, exclusive_domain() as domain:
        environment = {**link_environment(domain), **dds_environment("wireless")}
        with node_processes(environment) as processes:
            processes.start("target_verifier_node", parameters, link.server.prefix)
            requested = map(str, (domain, robots, own, rate_hz, seconds))
            driven = subprocess.run(
                [*link.robot.prefix, sys.executable, __file__, "drive", *requested],
                env={**os.environ, **environment},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
    return {"robots": robots, "own": own, **json.loads(driven.stdout)}


def _received() -> int:
    """Return the bytes that the interfaces of this end have received, but loopback's."""
    lines = [line.split() for line in Path("/proc/self/net/dev").read_text().splitlines()[2:]]
    return sum(int(fields[1]) for fields in lines if fields[0] != "lo:")


if __name__ == "__main__":
    app()

# SPDX-License-Identifier: Apache-2.0
"""Calls of a ROS 2 service that does nothing, so that only DDS and the link are measured.

    python -m adahi_lab.nodes.service_calls serve
    python -m adahi_lab.nodes.service_calls drive --size_bytes 1000 --calls 300 --out FILE.json

One call per control period, after the reply or the timeout of the last: as a robot that waits for each
action. `adahi lab bench dds` runs both at the ends of an emulated link, with DDS settings from the
environment.
"""

from __future__ import annotations

import json
import time
from array import array
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import rclpy
import typer
from adahi_msgs.srv import VerifyDraft
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node

from adahi_lab.peers.driving import Call, LinkWatch
from adahi_ros.nodes.common.executors import executor_of

SERVICE = "verify_draft"
WAIT_S = 60.0
LOOK_S = 0.1  # longest interval between two checks for a signal
WARM_UP = 20  # calls that are not recorded

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def serve() -> None:
    """Reply until SIGTERM; prints `ready` when it listens."""
    rclpy.init()
    node = Node("service_calls_server")

    def reply(request: VerifyDraft.Request, response: VerifyDraft.Response) -> VerifyDraft.Response:
        response.accepted = [True, True]
        response.actions = array("f", [0.0, 0.0])
        response.step_id = request.step_id
        return response

    node.create_service(VerifyDraft, SERVICE, reply)
    executor = executor_of(node)
    print("ready", flush=True)
    try:
        while True:
            executor.spin_once(LOOK_S)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass


@app.command()
def drive(
    size_bytes: Annotated[int, typer.Option("--size_bytes", min=100, help="Of a serialized request.")],
    calls: Annotated[int, typer.Option(min=1)],
    out: Annotated[Path, typer.Option(help="JSON file to write.")],
    period_s: Annotated[float, typer.Option("--period_s", min=0.0, help="Control period.")] = 0.05,
    timeout_s: Annotated[float, typer.Option("--timeout_s", min=1e-3, help="Timeout of a call.")] = 10.0,
    limit_s: Annotated[float, typer.Option("--limit_s", help="Stop early after this time.")] = 60.0,
) -> None:
    """Call and record what each call took."""
    rclpy.init()
    node = Node("service_calls_client")
    client = node.create_client(VerifyDraft, SERVICE)
    executor = executor_of(node)
    if not client.wait_for_service(WAIT_S):
        raise SystemExit(f"error: no service {SERVICE} after {WAIT_S:g} s")
    made: list[Call] = []
    link = LinkWatch(-1, 0.0)
    request = VerifyDraft.Request(observation_window=array("f", bytes(size_bytes - size_bytes % 4)))
    end = time.monotonic() + limit_s
    for index in range(calls + WARM_UP):
        if index == WARM_UP:
            link.before(0)
        start = time.monotonic()
        future = client.call_async(request)
        while not future.done() and time.monotonic() < start + timeout_s:
            executor.spin_once(start + timeout_s - time.monotonic())
        call = Call(start, 1e3 * (time.monotonic() - start), 0.0, future.done())
        client.remove_pending_request(future)
        if index >= WARM_UP:
            made.append(call)
        if time.monotonic() > end and made:
            break
        while (left_s := start + period_s - time.monotonic()) > 0.0:
            executor.spin_once(left_s)
    record = {"name": "service_calls", "calls": [asdict(call) for call in made], **link.record()}
    out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    app()

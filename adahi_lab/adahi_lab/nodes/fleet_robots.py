# SPDX-License-Identifier: Apache-2.0
"""Many robots in one process, which send requests to a verifier in real time; see `fleet_robot.py`.

As a program: python -m adahi_lab.nodes.fleet_robots SETTINGS.json RECORDS.json. The first file has the
arguments of `run_robots`; the program writes one `FleetRecord` for each robot to the second.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path

import rclpy
from adahi_msgs.srv import DescribeTarget
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.utilities import try_shutdown

from adahi_lab.nodes.fleet_robot import FleetClock, FleetRobot, fleet_wants
from adahi_ros.core.signature import Signature
from adahi_ros.nodes.common.executors import executor_of
from adahi_ros.nodes.common.verifier_messages import from_description
from adahi_ros.nodes.robot.dds_transport import DdsTransport, VerifierClients
from adahi_ros.protocol.request import Sender
from adahi_ros.robot.session import VerifierSession

DISCOVERY_S = 30.0


def run_robots(
    robots: int, rate_hz: float, seconds: float, every: int, grace_s: float, seed: int
) -> list[dict[str, object]]:
    """Let robots send requests for a time; return their records.

    Args:
        robots: how many.
        rate_hz: of their control.
        seconds: how long.
        every: see `FleetRobot`; 0 for half of the target's plan.
        grace_s: see `FleetRobot`.
        seed: of their walks and of the order of their steps.

    Raises:
        TimeoutError: there is no verifier.
    """
    rclpy.init()
    node = Node("fleet")
    clients, arrived = VerifierClients(node, "best_effort"), set[int]()
    executor = executor_of(node)
    signature = _signature(clients, executor)
    every = every or max(1, signature.horizon // 2)
    fleet = []
    for number in range(robots):
        sender = Sender(f"robot_{number}", seed, "", None)
        transport = DdsTransport(clients, sender, partial(arrived.add, number))
        session = VerifierSession(transport, fleet_wants(signature), True, lambda: None)
        session.start(time.monotonic())
        fleet.append(FleetRobot(session, 1.0 / rate_hz, every, grace_s, seed + number))
    started_s = time.monotonic()
    clock = FleetClock(fleet, rate_hz, started_s)
    while (now_s := time.monotonic()) < started_s + seconds:
        for number in tuple(arrived):
            fleet[number].poll(now_s)
        arrived.clear()
        clock.go_on(now_s)
        executor.spin_once(max(0.0, clock.next_s - time.monotonic()))
    records = [robot.end().plain() for robot in fleet]
    executor.shutdown()
    node.destroy_node()
    try_shutdown()
    return records


def _signature(clients: VerifierClients, executor: Executor) -> Signature:
    """Request the target's description."""
    limit_s = time.monotonic() + DISCOVERY_S
    while not clients.present:
        executor.spin_once(0.1)
        if time.monotonic() > limit_s:
            raise TimeoutError(f"no verifier in {DISCOVERY_S:g} s")
    future = clients.describing.call_async(DescribeTarget.Request())
    while not future.done():
        executor.spin_once(0.1)
        if time.monotonic() > limit_s:
            raise TimeoutError(f"no verifier has described itself in {DISCOVERY_S:g} s")
    return from_description(future.result()).signature


if __name__ == "__main__":
    wanted, records = map(Path, sys.argv[1:])
    records.write_text(json.dumps(run_robots(**json.loads(wanted.read_text()))))

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
from adahi_msgs.srv import DescribeTarget, VerifyDraft
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
CATCH_UP_S = 0.1  # of a flood, which may send requests this much late
FLOOD = "flood"  # name of the robot that sends too many requests


def run_robots(
    robots: int, rate_hz: float, seconds: float, every: int, grace_s: float, seed: int, flood_hz: float = 0.0
) -> list[dict[str, object]]:
    """Let robots send requests for a time; return their records.

    Args:
        robots: how many; may be 0 with a flood.
        rate_hz: of their control.
        seconds: how long.
        every: see `FleetRobot`; 0 for half of the target's plan.
        grace_s: see `FleetRobot`.
        seed: of their walks and of the order of their steps.
        flood_hz: rate of the requests of another robot, which waits for no reply.

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
    flood = _Flood(clients, seed, signature, flood_hz, started_s)
    while (now_s := time.monotonic()) < started_s + seconds:
        for number in tuple(arrived):
            fleet[number].poll(now_s)
        arrived.clear()
        clock.go_on(now_s)
        flood.go_on(now_s)
        executor.spin_once(max(0.0, min(flood.due_s, clock.next_s) - time.monotonic()))
    records = [robot.end().plain() for robot in fleet]
    executor.shutdown()
    node.destroy_node()
    try_shutdown()
    return records


class _Flood:
    """A robot that sends far too many requests, each for a new step with a whole window."""

    def __init__(
        self, clients: VerifierClients, seed: int, signature: Signature, rate_hz: float, started_s: float
    ) -> None:
        self._client = clients.verifying
        self._period_s = 1.0 / rate_hz if rate_hz else float("inf")
        self.due_s = started_s if rate_hz else float("inf")
        self._step = 0
        self._message = VerifyDraft.Request(
            protocol=VerifyDraft.Request.PROTOCOL_VERSION,
            robot_id=FLOOD,
            session_id=seed,
            observation_window=[0.0] * (signature.history * signature.observation_dim),
            goal=[0.0] * signature.goal_dim,
            needed_in_s=0.001,
        )

    def go_on(self, now_s: float) -> None:
        """Send the due requests."""
        self.due_s = max(self.due_s, now_s - CATCH_UP_S)
        while self.due_s <= now_s:
            self.due_s += self._period_s
            self._step += 1
            self._message.step_id = self._message.first_step = self._step
            self._client.remove_pending_request(self._client.call_async(self._message))


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

"""Over DDS: requests whose replies reach nobody keep a node from its work only for a moment."""

from __future__ import annotations

import time
from typing import Any

import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.service import Service
from std_srvs.srv import Trigger

from adahi_lab.nodes.observer import Observer
from adahi_ros.nodes.common.executors import executor_of
from adahi_ros.nodes.common.reachable import ServiceReplies

REQUESTS = 30
UNMATCHED = QoSProfile(depth=REQUESTS, durability=DurabilityPolicy.TRANSIENT_LOCAL)
LONG_S = 30.0


def test_a_client_that_replies_do_not_reach_is_served_and_gets_few_of_them(
    ends: list[Observer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reader wants what the service's writer does not offer, so each reply would block for 0.1 s."""
    sent, send = [], Service.send_response
    served: list[Trigger.Request] = []

    def counted(self: Any, response: Any, header: Any) -> None:
        sent.append(header)
        send(self, response, header)

    def serve(request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        served.append(request)
        response.success = True
        return response

    monkeypatch.setattr(Service, "send_response", counted)
    server, robot = ends
    qos = QoSProfile(depth=REQUESTS)
    service = server.node.create_service(Trigger, "say", serve, qos_profile=qos)
    ServiceReplies().guard(service)
    executor = executor_of(server.node)
    client = robot.node.create_client(Trigger, "say", qos_profile=UNMATCHED)
    other = robot.node.create_client(Trigger, "say", qos_profile=qos)

    def spin_until(done: Any) -> None:
        end_s = time.monotonic() + LONG_S
        while not done():
            assert time.monotonic() < end_s
            executor.spin_once(timeout_sec=0.01)
            robot._executor.spin_once(timeout_sec=0.0)

    assert other.wait_for_service(LONG_S)
    for _ in range(REQUESTS):
        client.call_async(Trigger.Request())
    spin_until(lambda: len(served) == REQUESTS)
    assert len(sent) < REQUESTS / 4
    reply = other.call_async(Trigger.Request())
    spin_until(reply.done)
    assert reply.result().success

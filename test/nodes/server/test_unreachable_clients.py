"""Over DDS: a client that replies do not reach, under many names, and the GUID that reveals it."""

from __future__ import annotations

import time
from typing import Any

from adahi_msgs.srv import VerifyDraft

from adahi_lab.nodes.observer import Observer
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.common.reachable import Clients
from adahi_ros.server.schedule import BatchParameters
from test.nodes.server.test_request_scheduler import Front

REQUESTS = 40


class Counted:
    """A service that counts what is sent."""

    def __init__(self, service: Any) -> None:
        self.handle, self._service = service.handle, service
        self.sent: list[int] = []

    def send_response(self, response: VerifyDraft.Response, header: Any) -> None:
        self.sent.append(response.step_id)
        self._service.send_response(response, header)


def taken(service: Any, count: int) -> list[tuple[VerifyDraft.Request, Any]]:
    """Wait for requests."""
    found: list[tuple[VerifyDraft.Request, Any]] = []
    end_s = time.monotonic() + 20.0
    while len(found) < count and time.monotonic() < end_s:
        request, header = service.handle.service_take_request(VerifyDraft.Request)
        if header is None:
            time.sleep(0.005)
        else:
            found.append((request, header))
    assert len(found) == count
    return found


def client_for(robot: Observer, reliability: str) -> Any:
    return robot.node.create_client(VerifyDraft, "verify_draft", qos_profile=verify_qos(reliability))


def test_each_client_has_a_guid_whatever_name_it_uses(ends: list[Observer]) -> None:
    server, robot = ends
    service = server.node.create_service(VerifyDraft, "verify_draft", lambda request, response: response)
    clients = [client_for(robot, "reliable") for _ in range(2)]
    for client in clients:
        assert client.wait_for_service(20.0)
    guids = []
    for client, name in ((clients[0], "arm"), (clients[0], "leg"), (clients[1], "arm")):
        client.call_async(VerifyDraft.Request(robot_id=name))
        ((_, header),) = taken(service, 1)
        guids.append(Clients().client_of(header))
    assert guids[0] is not None
    assert guids[0] == guids[1] != guids[2]
    assert Clients().client_of(object()) is None


def test_a_client_that_no_reply_reaches_blocks_once_under_all_its_names(ends: list[Observer]) -> None:
    server, robot = ends
    service = server.node.create_service(
        VerifyDraft, "verify_draft", lambda request, response: response, qos_profile=verify_qos("best_effort")
    )
    counted = Counted(service)
    client = client_for(robot, "reliable")  # its reader does not match the writer of replies
    front = Front(batch=BatchParameters(size=1, quota_hz=0.0), service=counted)
    end_s = time.monotonic() + 20.0
    while not counted.sent and time.monotonic() < end_s:
        client.call_async(VerifyDraft.Request(robot_id="first"))  # of another protocol: refused at its turn
        front.turns.serve()
        time.sleep(0.01)
    assert counted.sent
    for number in range(REQUESTS):
        client.call_async(VerifyDraft.Request(robot_id=f"name {number}", step_id=1 + number))
    while front.turns.serve():
        pass
    assert len(counted.sent) == 1
    assert front.turns.wait_s == float("inf")

"""A robot says why it finds no verifier, where another reliability is the reason."""

from __future__ import annotations

import pytest
from adahi_msgs.srv import DescribeTarget, VerifyDraft

from adahi_lab.nodes.observer import Observer
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.robot.dds_transport import VerifierClients

SAYS = "/verify_draft has the reliability {other}: verification.reliability is {mine}, must be the same"


@pytest.mark.parametrize(
    ("mine", "other"), [("best_effort", "reliable"), ("reliable", "best_effort")], ids=("best", "reliable")
)
def test_a_verifier_of_another_reliability_is_named_as_such(
    ends: list[Observer], mine: str, other: str
) -> None:
    server, robot = ends
    clients = VerifierClients(robot.node, mine)
    assert clients.absence == ""
    server.node.create_service(DescribeTarget, "describe_target", lambda request, response: response)
    service = server.node.create_service(
        VerifyDraft, "verify_draft", lambda request, response: response, qos_profile=verify_qos(other)
    )
    robot.wait_until(lambda: bool(clients.absence), 20.0, "a verifier")
    assert not clients.present
    assert clients.absence.startswith(SAYS.format(mine=mine, other=other))
    server.node.destroy_service(service)
    server.node.create_service(
        VerifyDraft, "verify_draft", lambda request, response: response, qos_profile=verify_qos(mine)
    )
    robot.wait_until(lambda: clients.present and not clients.absence, 20.0, "a verifier that fits")

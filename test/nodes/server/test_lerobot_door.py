"""A verifier with a door for LeRobot's remote inference."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("zenoh", reason="pip install -r requirements/remote_targets.txt")

from adahi_ros.core.signature import Feature, Signature
from adahi_ros.nodes.server import target_verifier_parameters
from adahi_ros.nodes.server.target_verifier_node import TargetVerifierNode
from test.doors.lerobot_client import Client
from test.doors.served import Planner
from test.nodes.in_process import DEADLINE_S, NodesInProcess
from test.nodes.server.test_doors import free_port
from test.policies.remote.lerobot_server import tensor


def test_a_client_gets_plans_of_the_verifier(nodes: NodesInProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    planner = Planner(Signature(1, 4, 2, (Feature("observation", 3),), rate_hz=20.0))
    monkeypatch.setattr(target_verifier_parameters, "policy_from", lambda *_, **__: planner)
    port = free_port()
    node = nodes.start(TargetVerifierNode, {"checkpoint": "arm", "doors.lerobot.port": port})
    nodes.spin(node)
    address = f"tcp/127.0.0.1:{port}"
    for _ in range(2):
        with Client(address) as client:
            client.open()
            answer = client.infer({"observation": tensor(np.full(3, 2.0, np.float32))}, "")
            np.testing.assert_array_equal(answer["body"]["canonical_actions"][:, 0], [2.0, 3.0, 4.0, 5.0])
            assert nodes.observer.change_state("target_verifier", "deactivate", DEADLINE_S, lambda: None)
            assert client.lost.wait(DEADLINE_S)
        assert nodes.observer.change_state("target_verifier", "activate", DEADLINE_S, lambda: None)

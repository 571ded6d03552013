"""What LeRobot's own code sent once, at our door and at our target.

`lerobot_remote_v1.json` has messages, in base64, of `RemoteClient` and of `SessionWorker` with `PolicyServer`
of huggingface/lerobot at 0c72316c, with eclipse-zenoh 1.10.2: the client at this door, and this target at the
server, in front of a policy that adds numbers to its state. Only the parts of it that carry actions ran
(protocol, codec, transport, client, server), not `lerobot-rollout` and no weights. Identities of sessions
differ with each start.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("zenoh", reason="pip install -r requirements/remote_targets.txt")

import msgpack

from test.doors.lerobot_client import ROOT, Client
from test.doors.served import LIMIT_S, PICTURE, Planner
from test.doors.test_lerobot_door import PLAN, door_of
from test.policies.remote.lerobot_server import PolicyServer, Serving
from test.policies.remote.test_lerobot_remote import STATE, propose, target_of

RECORDED: dict[str, list[str]] = json.loads(Path(__file__).with_name("lerobot_remote_v1.json").read_text())
NAMES = """
semantics: so101-v1
names: {observation.state: [a.pos, b.pos, gripper.pos], action: [a.pos, b.pos]}
"""


def messages(of: str) -> list[dict[str, Any]]:
    """Return recorded messages, with arrays as they were sent."""
    return [msgpack.unpackb(base64.b64decode(each)) for each in RECORDED[of]]


def test_what_the_client_sent_once_is_answered(tmp_path: Path) -> None:
    names = tmp_path / "names.yaml"
    names.write_text(NAMES)
    planner = Planner()
    got: list[str] = []
    with door_of(planner, names_file=str(names)) as door, Client(door.address) as client:
        client.describe()
        keys = {"describe": f"{ROOT}/arm/describe", "open": f"{client.own}/open"}
        for message in messages("client"):
            kind = message["message_type"]
            if kind != "describe":
                message["instance_id"] = client.about["instance_id"]
            if kind in ("control", "observation"):
                message["session_id"] = client.session
            if kind == "observation":
                client.zenoh.put(f"{client.key}/obs", msgpack.packb(message))
                answer = client.answers.get(timeout=LIMIT_S)
            else:
                found = client.ask(keys.get(kind) or f"{client.key}/control", message)
                assert isinstance(found, dict), found
                answer = found
            got.append(answer["message_type"])
            assert answer["request_id"] == message["request_id"]
            if kind == "open":
                client.session = answer["session_id"]
                client.subscribe()
            if got[-1] == "action":
                np.testing.assert_array_equal(answer["body"]["canonical_actions"], PLAN)
    assert got == ["descriptor", "accepted", "ack", "action", "ack", "action", "error", "ack"]
    np.testing.assert_array_equal(planner.seen[0].images["observation.images.front"][0, 0], PICTURE)


def test_what_the_server_sent_once_is_a_plan() -> None:
    sent = messages("server")
    [about] = [each["body"] for each in sent if each["message_type"] == "descriptor"]
    [ack, *_] = [each["body"] for each in sent if each["message_type"] == "ack"]
    plans = [each["body"] for each in sent if each["message_type"] == "action"]
    assert ack == {"operation": "reset", "applied_generation": 0}
    without = {name: value for name, value in about.items() if name != "instance_id"}
    served = PolicyServer(Serving(without, about["capabilities"], lambda _: plans[0]["canonical_actions"]))
    served.start()
    try:
        plan = propose(target_of(served.url), 1)
    finally:
        served.stop()
    np.testing.assert_array_equal(plan[0], STATE[0, :, :2] + np.arange(4, dtype=np.float32)[:, None])

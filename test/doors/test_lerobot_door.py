"""The door for LeRobot's remote inference: sessions, their plans, and what it refuses."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

REASON = "pip install -r requirements/remote_targets.txt"
pytest.importorskip("zenoh", reason=REASON)

from adahi_ros.doors import lerobot_server  # noqa: E402
from adahi_ros.doors.lerobot import LeRobotDoor  # noqa: E402
from adahi_ros.policies.interface import Policy, TargetUnavailableError  # noqa: E402
from adahi_ros.policies.remote.lerobot_remote import LeRobotRemoteTarget  # noqa: E402
from adahi_ros.server.schedule import BatchParameters  # noqa: E402
from test.certificates import signed  # noqa: E402
from test.doors.lerobot_client import Client  # noqa: E402
from test.doors.served import ARM, PICTURE, STATE, Planner, Served, served  # noqa: E402
from test.policies.remote.lerobot_server import tensor  # noqa: E402
from test.policies.remote.test_lerobot_remote import FILE, SEEN  # noqa: E402
from test.waiting import wait_for  # noqa: E402

FEATURES = {
    "observation.state": tensor(STATE),
    "observation.images.front": {
        "__lerobot_type__": "rgb",
        "encoding": "raw",
        "shape": [4, 6, 3],
        "dtype": "uint8",
        "channel_order": "RGB",
        "data": PICTURE.tobytes(),
    },
}
PLAN = STATE[:2] + np.arange(4, dtype=np.float32)[:, None]


@contextmanager
def door_of(*policies: Policy, **arguments: Any) -> Iterator[Served]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with served(*policies, kind=LeRobotDoor, port=port, **arguments) as door:
        yield door


@pytest.fixture
def lerobot(planner: Planner) -> Iterator[Served]:
    with door_of(planner) as door:
        yield door


def refused(answer: dict[str, Any] | str) -> tuple[str, str]:
    assert isinstance(answer, dict)
    assert answer["message_type"] == "error"
    return answer["body"]["code"], answer["body"]["message"]


def test_a_session_gets_plans(lerobot: Served, planner: Planner) -> None:
    with Client(lerobot.address) as client:
        accepted = client.open()
        assert accepted["body"]["capabilities"] == client.about["capabilities"]
        answer = client.infer(FEATURES)
    assert answer["message_type"] == "action"
    body = answer["body"]
    np.testing.assert_array_equal(body["canonical_actions"], PLAN)
    assert body["canonical_actions"].dtype == np.float32
    assert (body["execution_steps"], body["model_actions"]) == (4, None)
    assert (body["task"], body["task_version"], body["capture_time"]) == ("stack the cups", 3, 12.5)
    assert "cursor" not in body
    [seen] = planner.seen
    np.testing.assert_array_equal(seen.images["observation.images.front"][0, 0], PICTURE)
    assert seen.instructions == ("stack the cups",)


def test_a_deployment_is_described_by_its_target(lerobot: Served) -> None:
    with Client(lerobot.address) as client:
        client.describe()
    assert client.about["deployment"] == client.about["semantics"] == "arm"
    can = client.about["capabilities"]
    assert (can["modes"], can["execution_steps"], can["action_interval"]) == (["chunk"], 4, 0.05)
    state, image = can["features"]
    assert (state["shape"], state["dtype"], image["shape"], image["kind"]) == (
        [3],
        "float32",
        [4, 6, 3],
        "rgb",
    )
    assert can["action_feature"]["names"] == list(ARM.action_names)


def test_clients_with_aligned_plans_get_their_cursors(lerobot: Served) -> None:
    settings = {"chunk_merge": "aligned", "blend_steps": 0}
    with Client(lerobot.address) as client:
        accepted = client.open(required_capabilities=["chunk_alignment_v2"], chunk_settings=settings)
        assert accepted["body"]["chunk_settings"] == settings
        body = client.infer(FEATURES)["body"]
    assert (body["observation_cursor"], body["cursor"]) == (7, 9)


def test_sessions_share_a_batch(planner: Planner) -> None:
    batch = BatchParameters(quota_hz=0.0, wait_s=0.0)
    with door_of(planner, batch=batch) as door, ExitStack() as stack:
        clients = [stack.enter_context(Client(door.address)) for _ in range(4)]
        for each in clients:
            assert each.open()["message_type"] == "accepted"
        planner.may.clear()
        clients[0].send(FEATURES)
        assert planner.waiting.wait(30.0)
        for each in clients[1:]:
            each.send(FEATURES)
            each.infer(FEATURES)  # refused as busy: thus the first has arrived
        planner.may.set()
        answers = [each.answers.get(timeout=30.0) for each in clients]
    assert [each["message_type"] for each in answers] == ["action"] * 4
    assert planner.sizes == [1, 3]


def test_our_target_is_a_client_of_our_door(lerobot: Served, tmp_path: Path) -> None:
    url = lerobot.address.replace("tcp/", "tcp://")
    file = {**FILE, "url": url, "semantics": "arm", "names": {"action": ["x", "y"]}, "connections": 2}
    plans = LeRobotRemoteTarget(tmp_path, **file).propose(SEEN, np.zeros((2, 0))).actions
    wanted = SEEN.features["observation.state"][:, :, :2] + np.arange(4, dtype=np.float32)[None, :, None]
    np.testing.assert_array_equal(plans, wanted)


def test_a_file_says_what_lerobot_calls_it(planner: Planner, tmp_path: Path) -> None:
    names = tmp_path / "names.yaml"
    names.write_text(
        "semantics: so101-v1\n"
        "names: {observation.state: [a.pos, b.pos, c.pos], action: [a.pos, b.pos]}\n"
        "keys: {observation.images.front: observation.images.camera1}\n"
    )
    with door_of(planner, names_file=str(names)) as door, Client(door.address) as client:
        client.open()
        assert client.about["semantics"] == "so101-v1"
        can = client.about["capabilities"]
        assert [each["semantics"] for each in can["features"]] == ["so101-v1"] * 2
        assert [each["name"] for each in can["features"]] == [
            "observation.state",
            "observation.images.camera1",
        ]
        assert can["features"][0]["names"] == ["a.pos", "b.pos", "c.pos"]
        assert can["action_feature"]["names"] == ["a.pos", "b.pos"]
        renamed = {**FEATURES, "observation.images.camera1": FEATURES["observation.images.front"]}
        np.testing.assert_array_equal(client.infer(renamed)["body"]["canonical_actions"], PLAN)


OPENINGS: list[tuple[dict[str, Any], str, str]] = [
    ({"semantics": "degrees"}, "incompatible", "semantics: 'degrees', must be 'arm'"),
    ({"features": []}, "incompatible", "features: [], must be [{"),
    ({"action_feature": None}, "incompatible", "action_feature: None, must be {"),
    ({"expected_artifact": "other"}, "incompatible", "expected_artifact: must be "),
    ({"action_interval": 0.1}, "incompatible", "action_interval: must be 0.05"),
    ({"mode": "rtc_guided"}, "unsupported", "mode: 'rtc_guided', must be 'chunk'"),
    ({"encoding": "jpeg"}, "unsupported", "encoding: 'jpeg', must be 'raw'"),
    (
        {"required_capabilities": ["more"]},
        "unsupported",
        "required_capabilities: must be of chunk_alignment_v1",
    ),
]


@pytest.mark.parametrize(("changes", "code", "text"), OPENINGS)
def test_a_session_that_does_not_fit_is_refused(
    lerobot: Served, changes: dict[str, Any], code: str, text: str
) -> None:
    with Client(lerobot.address) as client:
        found, message = refused(client.open(**changes))
    assert found == code
    assert message.startswith(text)


def test_an_array_in_the_place_of_a_text_is_refused(lerobot: Served) -> None:
    with Client(lerobot.address) as client:
        client.describe()
        body = {"semantics": tensor(np.zeros(3, np.float32))}
        assert isinstance(client.ask(f"{client.own}/open", client.message("open", body)), str)
        assert client.open()["message_type"] == "accepted"


OBSERVATIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"generation": 4}, "stale", "generation: 4, must be 0"),
    ({"body": {"sequence": 0}}, "stale", "sequence: must be an integer above -1"),
    ({"body": {"features": 3}}, "malformed", "features: must be a mapping from names to arrays"),
    ({"body": {"features": {}}}, "malformed", "observation.state: missing, must be there"),
    ({"body": {"task": ""}}, "malformed", "task: '', must be a sentence"),
    ({"instance_id": "other"}, "stale", "session: is unknown, must be opened again"),
    ({"session_id": "other"}, "stale", "session: is unknown, must be opened again"),
    (
        {"body": {"features": {**FEATURES, "observation.state": tensor(np.zeros(4, np.float32))}}},
        "malformed",
        "observation.state: 4 numbers, must be 3",
    ),
    (
        {"body": {"features": {**FEATURES, "observation.state": tensor(np.full(3, np.nan, np.float32))}}},
        "malformed",
        "observation.state",
    ),
]


@pytest.mark.parametrize(("changes", "code", "text"), OBSERVATIONS)
def test_an_observation_that_is_wrong_is_refused(
    lerobot: Served, changes: dict[str, Any], code: str, text: str
) -> None:
    with Client(lerobot.address) as client:
        client.open()
        if "sequence" in changes.get("body", {}):
            changes = {"body": {"sequence": -1}}
        found, message = refused(client.infer(FEATURES, **changes))
        assert found == code
        assert message.startswith(text)
        assert client.infer(FEATURES)["message_type"] == "action"


def test_a_generation_that_goes_back_is_refused(lerobot: Served, planner: Planner) -> None:
    with Client(lerobot.address) as client:
        client.open()
        client.infer(FEATURES)
        assert client.control("invalidate", 2)["body"]["applied_generation"] == 2
        client.infer(FEATURES)
        assert refused(client.control("reset", 1))[0] == "stale"
        assert refused(client.control("dance", 2)) == (
            "malformed",
            "operation: must be one of reset, invalidate, status, close",
        )
    first, second = (each.episodes[0] for each in planner.seen)
    assert first != second


def test_a_plan_of_a_former_generation_is_not_sent(lerobot: Served, planner: Planner) -> None:
    with Client(lerobot.address) as client:
        client.open()
        planner.may.clear()
        client.send(FEATURES)
        assert planner.waiting.wait(30.0)
        client.control("reset", 1)
        second = client.send(FEATURES)
        planner.may.set()
        answer = client.answers.get(timeout=30.0)
        assert (answer["message_type"], answer["request_id"]) == ("action", second["request_id"])
        assert client.answers.empty()
    assert len(planner.seen) == 2


def test_more_sessions_than_places_wait(planner: Planner) -> None:
    with door_of(planner, sessions=1) as door, Client(door.address) as first, Client(door.address) as second:
        first.open()
        answer = second.open()
        assert refused(answer)[0] == "busy"
        assert answer["body"]["details"] == {"admission_blocker": "active_session"}
        first.control("close", 0)
        assert second.open()["message_type"] == "accepted"


def test_a_client_that_is_away_loses_its_session(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lerobot_server, "AWAY_S", 0.0)
    with door_of(planner, sessions=1) as door, Client(door.address) as second:
        with Client(door.address) as first:
            first.open()
        wait_for(lambda: second.open()["message_type"] == "accepted")


def test_clients_see_the_end_of_the_door(planner: Planner) -> None:
    with ExitStack() as stack:
        with door_of(planner) as door:
            client = stack.enter_context(Client(door.address))
            client.open()
            planner.may.clear()
            client.send(FEATURES)
            assert planner.waiting.wait(30.0)
        planner.may.set()
        assert client.lost.wait(30.0)


def test_an_unknown_deployment_names_those_that_are_there(lerobot: Served) -> None:
    with Client(lerobot.address) as client:
        assert client.describe("leg") == "deployment: 'leg', must be one of arm"


@pytest.mark.parametrize("message", [b"", b"\xc1", b"\x80", bytes(9000), b"\x93" * 20])
def test_a_message_that_is_none_is_one_sentence(lerobot: Served, message: bytes) -> None:
    with Client(lerobot.address) as client:
        client.open()
        answer = client.ask(f"{client.own}/open", message)
        assert isinstance(answer, str)
        assert answer
        client.zenoh.put(f"{client.key}/obs", message)
        assert client.infer(FEATURES)["message_type"] == "action"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"address": "0.0.0.0"}, r"^zenoh_file: '', must name zenoh's file with TLS, and one of"),
    ({"zenoh_file": "absent"}, r"^zenoh_file: 'absent', No such file"),
    ({"names_file": "absent"}, r"^names_file: 'absent', No such file"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LeRobotDoor(port=7447, **arguments).open()


def test_a_port_in_use_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=rf"^port: {port}, cannot listen at '127.0.0.1': "):
            LeRobotDoor(port=port).open()


def test_names_of_two_keys_are_refused(tmp_path: Path) -> None:
    names = tmp_path / "names.yaml"
    names.write_text("keys: {observation.state: [a, b]}\n")
    with pytest.raises(ValueError, match=r"keys.observation.state: \['a', 'b'\], must be one name"):
        LeRobotDoor(port=7447, names_file=str(names)).open()


def test_a_file_of_zenoh_lets_in_only_its_users(planner: Planner, tmp_path: Path) -> None:
    authority, certificate, key = signed(tmp_path)
    (tmp_path / "users").write_text("arm:0123456789abcdef\n")
    file = tmp_path / "door.json5"
    files = {"listen_certificate": str(certificate), "listen_private_key": str(key)}
    auth = {"usrpwd": {"user": "door", "password": "x", "dictionary_file": str(tmp_path / "users")}}
    file.write_text(json.dumps({"transport": {"link": {"tls": files}, "auth": auth}}))
    ours = {"url": "", "semantics": "arm", "names": {"action": ["x", "y"]}, "timeout_s": 3.0}
    with door_of(planner, zenoh_file=str(file)) as door:
        assert door.address.startswith("tls/127.0.0.1:")
        for user, enters in (("arm", True), ("leg", False)):
            own = {"usrpwd": {"user": user, "password": "0123456789abcdef"}}
            trusted = {"root_ca_certificate": str(authority)}
            (tmp_path / "ours.json5").write_text(
                json.dumps({"transport": {"link": {"tls": trusted}, "auth": own}})
            )
            ours |= {"url": door.address.replace("tls/127.0.0.1", "tls://localhost"), "zenoh": "ours.json5"}
            target = LeRobotRemoteTarget(tmp_path, **{**FILE, **ours})
            if enters:
                assert target.propose(SEEN.rows(np.arange(1)), np.zeros((1, 0))).actions.shape == (1, 4, 2)
            else:
                with pytest.raises(
                    TargetUnavailableError,
                    match=r"is no server of zenoh, or knows no such client: Unable to connect",
                ):
                    target.propose(SEEN.rows(np.arange(1)), np.zeros((1, 0)))

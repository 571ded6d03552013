"""A target behind the door for openpi's clients: what clients get, and what they get wrong."""

from __future__ import annotations

import http.client
import math
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from test.doors.served import ARM, LIMIT_S, PICTURE, SEEN, STATE, Client, Planner, Served, served  # isort: skip
from websockets.exceptions import ConnectionClosed

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import CodeSpace, Feature, Observations, Signature
from adahi_ros.policies.interface import AS_TRAINED, Sampling, TargetUnavailableError
from adahi_ros.policies.remote.openpi import OpenPiTarget
from adahi_ros.server.schedule import BatchParameters
from test.certificates import self_signed
from test.waiting import wait_for

PLAN = STATE[:2] + np.arange(4, dtype=np.float32)[:, None]


@pytest.fixture
def client(door: Served) -> Iterator[Client]:
    with Client(door.address) as made:
        yield made


def test_the_server_says_first_what_it_reads(client: Client) -> None:
    image = {"keys": ["observation.images.front"], "shape": [4, 6, 3], "dtype": "uint8"}
    assert client.metadata == {
        "target": "arm",
        "observation": {
            "observation.state": {"keys": ["observation.state"], "shape": [3], "dtype": "float32"},
            "observation.images.front": image,
            "instruction": {"keys": ["prompt"]},
        },
        "action_names": ["x", "y"],
        "action_dim": 2,
        "horizon": 4,
        "rate_hz": 20.0,
    }


def test_each_observation_gets_its_plan_with_times(planner: Planner, client: Client) -> None:
    first, second = client.ask(SEEN), client.ask({**SEEN, "observation.state": 2 * STATE.astype(np.float64)})
    np.testing.assert_array_equal(first["actions"], PLAN)
    np.testing.assert_allclose(second["actions"], PLAN + STATE[:2], rtol=1e-6)
    assert first["server_timing"].keys() == {"infer_ms"}
    assert second["server_timing"].keys() == {"infer_ms", "prev_total_ms"}
    assert 0.0 < second["policy_timing"]["infer_ms"] <= second["server_timing"]["infer_ms"]
    read = planner.seen[0]
    np.testing.assert_array_equal(read.features["observation.state"], STATE[None, None])
    np.testing.assert_array_equal(read.images["observation.images.front"], PICTURE[None, None])
    assert read.instructions == ("stack the cups",)


def test_our_own_client_of_openpi_is_served(planner: Planner, door: Served) -> None:
    """Also with mappings in mappings, and with colours as the first axis."""
    file = {
        "horizon": 4,
        "action_names": ["x", "y"],
        "state": {"state": {"size": 3, "as": "observation.state"}},
        "images": {"front": {"size": [4, 6], "as": "observation.images.front"}},
        "instruction": True,
    }
    seen = Observations({"state": STATE[None, None]}, {}, ("go",), {"front": PICTURE[None, None]})
    draws = np.zeros((1, 0), np.float32)
    target = OpenPiTarget(Path(), url=door.address, channels_first=True, **file)
    np.testing.assert_array_equal(target.propose(seen, draws).actions, PLAN[None])
    np.testing.assert_array_equal(planner.seen[-1].images["observation.images.front"], PICTURE[None, None])


def test_mappings_in_mappings_have_keys_with_slashes(tmp_path: Path, planner: Planner) -> None:
    keys = {
        "observation.state": ["observation/joint_position", "observation/gripper_position"],
        "observation.images.front": "images/cam_high",
        "instruction": "task",
    }
    file = tmp_path / "keys.yaml"
    file.write_text(yaml.safe_dump({"keys": keys, "metadata": {"reset_pose": [0.5, 1.0]}}))
    with served(planner, keys_file=str(file)) as door, Client(door.address) as client:
        assert client.metadata["reset_pose"] == [0.5, 1.0]
        assert client.metadata["observation"]["observation.state"]["keys"] == keys["observation.state"]
        seen = {
            "observation": {"joint_position": STATE[:2], "gripper_position": float(STATE[2])},
            "images": {"cam_high": PICTURE.transpose(2, 0, 1)},
            "task": "go",
        }
        np.testing.assert_array_equal(client.plan(seen), PLAN)
        np.testing.assert_array_equal(planner.seen[0].features["observation.state"], STATE[None, None])
        np.testing.assert_array_equal(planner.seen[0].images["observation.images.front"], PICTURE[None, None])


def test_clients_that_ask_together_share_a_batch(planner: Planner, door: Served) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(door.address)) for _ in range(5)]
        planner.may.clear()
        for at, each in enumerate(clients):
            each.send({**SEEN, "observation.state": STATE + at})
            wait_for(planner.waiting.is_set)  # the first is computed, the others wait for it
        planner.may.set()
        for at, each in enumerate(clients):
            np.testing.assert_allclose(each.receive()["actions"], PLAN + at, rtol=1e-6)
    assert sum(planner.sizes) == 5
    assert max(planner.sizes) > 1


NUMBERS, IMAGE = "observation.state", "observation.images.front"
REFUSED: list[tuple[Any, str]] = [
    ("hello", "message: a text of 5 characters, must be bytes of msgpack"),
    (b"\xc1", "message: 1 bytes that are no message (FormatError)"),
    (b"\x93\x01", "message: 2 bytes that are no message (Unpack failed: incomplete input)"),
    ([1, 2], "observation: a list, must be a mapping from keys to arrays"),
    ({}, f"{NUMBERS}: missing, must be there; there is nothing"),
    ({"observation.stat": STATE}, f"{NUMBERS}: missing, must be there (did you mean 'observation.stat'?)"),
    ({NUMBERS: {"arm": 1}}, f"there is {NUMBERS}/arm"),
    ({**SEEN, NUMBERS: STATE[:2]}, f"{NUMBERS}: 2 numbers, must be 3, the size of {NUMBERS}"),
    ({**SEEN, NUMBERS: [0, math.nan, 0]}, f"{NUMBERS}[1]: nan, must be finite"),
    ({**SEEN, NUMBERS: [1e300, 0, 0]}, f"{NUMBERS}[0]: inf, must be finite"),
    ({**SEEN, NUMBERS: "up"}, f"{NUMBERS}: 'up', must be numbers"),
    ({**SEEN, NUMBERS: [[1], [2, 3]]}, f"{NUMBERS}: a list, must be numbers"),
    (
        {**SEEN, NUMBERS: np.zeros((2, 3))},
        f"{NUMBERS}: an array of shape (2, 3), must be a list of numbers",
    ),
    ({**SEEN, "prompt": " "}, "prompt: ' ', must be a sentence of at most 512 characters"),
    ({**SEEN, "prompt": 7}, "prompt: 7, must be a sentence of at most 512 characters"),
    ({**SEEN, "prompt": "go " * 300}, "must be a sentence of at most 512 characters"),
    ({**SEEN, "prompt": None}, "prompt: a NoneType, must be a sentence of at most 512 characters"),
    ({**SEEN, IMAGE: PICTURE / 255}, f"{IMAGE}: an array of float64, must be an image of uint8"),
    *(
        ({**SEEN, IMAGE: image}, f"{IMAGE}: an array of shape {image.shape}, must be (4, 6, 3) or smaller")
        for image in (
            PICTURE[..., :2],
            PICTURE[0],
            np.zeros((5, 6, 3), np.uint8),
            np.zeros((0, 6, 3), np.uint8),
        )
    ),
]


@pytest.mark.parametrize(("message", "sentence"), REFUSED, ids=range(len(REFUSED)))
def test_a_refusal_is_a_sentence_and_the_connection_stays(
    client: Client, door: Served, planner: Planner, message: Any, sentence: str
) -> None:
    answer = client.ask(message)
    assert isinstance(answer, str)
    assert answer.isprintable()
    assert sentence in answer
    assert answer in door.refusals[-1]
    assert not planner.seen
    np.testing.assert_array_equal(client.plan(), PLAN)


def test_a_target_with_a_history_reads_all_of_it() -> None:
    signature = Signature(3, 2, 1, (Feature("observation", 2),), (Feature("goal", 1),))
    planner = Planner(signature)
    window = np.arange(6, dtype=np.float32).reshape(3, 2)
    with served(planner) as door, Client(door.address) as client:
        assert client.metadata["observation"]["observation"]["shape"] == [3, 2]
        client.plan({"observation": window, "goal": np.ones(1)})
        np.testing.assert_array_equal(planner.seen[0].features["observation"], window[None])
        np.testing.assert_array_equal(planner.seen[0].conditions["goal"], [[1.0]])
        wanted = "observation: an array of shape (2,), must be 3 lists of numbers, the oldest first"
        assert client.ask({"observation": window[0], "goal": np.ones(1)}) == wanted


def test_a_smaller_image_is_fitted(client: Client, planner: Planner) -> None:
    client.plan({**SEEN, "observation.images.front": PICTURE[:2, :3]})
    assert planner.seen[0].images["observation.images.front"].shape == (1, 1, 4, 6, 3)


def test_the_path_names_a_target() -> None:
    other = Planner(replace(ARM, horizon=2))
    with served(Planner(), other) as door:
        with Client(f"{door.address}/arm_1") as client:
            assert (client.metadata["target"], len(client.plan())) == ("arm_1", 2)
        with Client(f"{door.address}/arm?version=1") as client:
            assert len(client.plan()) == 4
        with pytest.raises(ConnectionClosed, match="target: 'leg', must be one of 'arm', 'arm_1'"):
            Client(f"{door.address}/leg")


def test_a_rule_that_needs_drafts_is_refused() -> None:
    coded = replace(ARM, codes=CodeSpace("0123456789abcdef", 2, 4))
    with (
        served(Planner(coded), rule="speculative") as door,
        pytest.raises(ConnectionClosed, match="target: 'arm' has the rule speculative, must have replace"),
    ):
        Client(door.address)


def test_who_asks_too_often_waits(planner: Planner) -> None:
    """One request in two seconds is within the quota; the client learns nothing of refusals."""
    with served(planner, batch=BatchParameters(quota_hz=0.5)) as door, Client(door.address) as client:
        answers = [client.ask(SEEN) for _ in range(2)]
    assert all(isinstance(each, dict) for each in answers)
    assert door.counts.replies["busy"] > 0
    assert door.counts.replies["ok"] == len(planner.seen) == 2
    assert not door.refusals


def test_a_target_that_is_away_is_a_sentence(client: Client, planner: Planner) -> None:
    def away(observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED) -> Proposal:
        raise TargetUnavailableError("ws://gpu: not reachable")

    propose = planner.propose
    planner.propose = away
    assert client.ask(SEEN) == "ws://gpu: not reachable"
    planner.propose = propose
    np.testing.assert_array_equal(client.plan(), PLAN)


def test_a_door_that_closes_ends_connections_and_frees_its_port(planner: Planner) -> None:
    with served(planner) as door:
        idle, waiting = Client(door.address), Client(door.address)
        planner.may.clear()
        waiting.send(SEEN)
        wait_for(planner.waiting.is_set)
        port = int(door.address.rpartition(":")[2])
    planner.may.set()
    for each in (idle, waiting):
        with each, pytest.raises(ConnectionClosed, match="1001"):
            each.receive()
    with served(Planner(), port=port) as again, Client(again.address) as client:
        np.testing.assert_array_equal(client.plan(), PLAN)


def test_health_is_public_and_pages_of_browsers_are_refused(door: Served) -> None:
    place = door.address.removeprefix("ws://")

    def status(path: str, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(place, timeout=LIMIT_S)
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
        connection.request("GET", path, headers={**upgrade, "Sec-WebSocket-Key": "A" * 22 + "==", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read() if answer.status != 101 else b""

    assert status("/healthz") == (200, b"OK\n")
    assert status("/", Origin="http://localhost")[0] == 403
    assert status("/")[0] == 101


TOKEN = "0123456789abcdef-arm"
OTHER = "fedcba9876543210-two"


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(f"# of the lab\narm_1 {TOKEN}\n\narm_2 {OTHER}\n")
    return path


def test_only_clients_with_a_token_enter(planner: Planner, tokens: Path) -> None:
    with served(planner, tokens_file=str(tokens)) as door:
        for scheme in ("Api-Key", "Bearer", "api-key"):
            with Client(door.address, additional_headers={"Authorization": f"{scheme} {TOKEN}"}) as client:
                client.plan()
        wrong = ("", "Api-Key", f"Api-Key {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, "Api-Key \xff")
        for each in wrong:
            with pytest.raises(Exception, match="HTTP 401"):
                Client(door.address, additional_headers={"Authorization": each})
        with pytest.raises(Exception, match="HTTP 401"):
            Client(door.address)
    robots = [each.episodes[0] for each in planner.seen]
    assert [str(each[0]) for each in robots if isinstance(each, tuple)] == ["openpi/arm_1/0"] * 3


def test_a_token_that_was_removed_opens_nothing_any_more(planner: Planner, tokens: Path) -> None:
    with served(planner, tokens_file=str(tokens)) as door:
        first, second = (
            Client(door.address, additional_headers={"Authorization": f"Api-Key {token}"})
            for token in (TOKEN, OTHER)
        )
        with first, second:
            first.plan()
            tokens.write_text(f"arm_2 {OTHER}\n")
            with pytest.raises(ConnectionClosed, match="token: is in the file of tokens no more"):
                first.ask(SEEN)
            second.plan()
            tokens.write_text("nonsense\n")  # by a file that is wrong, no client enters
            with pytest.raises(ConnectionClosed):
                second.ask(SEEN)


def test_a_client_has_so_many_connections(planner: Planner, tokens: Path) -> None:
    of = {name: {"additional_headers": {"Authorization": f"Bearer {name}"}} for name in (TOKEN, OTHER)}
    with served(planner, tokens_file=str(tokens), connections=2) as door, ExitStack() as stack:
        clients = [stack.enter_context(Client(door.address, **of[TOKEN])) for _ in range(2)]
        with pytest.raises(ConnectionClosed, match=r"1013.*connections: 2 of this client, must be below 2"):
            Client(door.address, **of[TOKEN])
        stack.enter_context(Client(door.address, **of[OTHER])).plan()
        clients[0].connection.close()
        wait_for(lambda: len(planner.seen) == 1)

        def enters() -> bool:
            try:
                stack.enter_context(Client(door.address, **of[TOKEN]))
            except ConnectionClosed:
                return False
            return True

        wait_for(enters)


def test_a_connection_may_be_encrypted(planner: Planner, tmp_path: Path) -> None:
    made, key = self_signed(tmp_path)
    with served(planner, certificate=str(made), key=str(key)) as door:
        assert door.address.startswith("wss://127.0.0.1:")
        trusting = ssl.create_default_context(cafile=made)
        with Client(door.address, ssl=trusting) as client:
            np.testing.assert_array_equal(client.plan(), PLAN)
        with pytest.raises(ssl.SSLCertVerificationError):
            Client(door.address, ssl=ssl.create_default_context())

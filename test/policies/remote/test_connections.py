"""Requests in flight together, each on a connection of its own, to a server that batches by itself."""

from __future__ import annotations

import http
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

REASON = "pip install -r requirements/remote_targets.txt"
pytest.importorskip("msgpack", reason=REASON)
pytest.importorskip("websockets.sync.server", reason=REASON)

from adahi_ros.policies.interface import TargetUnavailableError  # noqa: E402
from adahi_ros.policies.remote.groot import GrootTarget  # noqa: E402
from adahi_ros.policies.remote.openpi import OpenPiTarget  # noqa: E402
from adahi_ros.server.verifier import TargetVerifier  # noqa: E402
from test.certificates import self_signed  # noqa: E402
from test.policies.remote.conftest import served_by  # noqa: E402
from test.policies.remote.groot_server import actions  # noqa: E402
from test.policies.remote.openpi_server import PolicyServer, Serving  # noqa: E402
from test.waiting import wait_for  # noqa: E402

FILE = {
    "timeout_s": 10.0,
    "horizon": 4,
    "action_names": ["x", "y"],
    "state": {"observation": {"size": 2, "as": "observation/joint_position"}},
}
NO_DRAWS = np.zeros((1, 0), np.float32)


served = served_by(PolicyServer)


def target_of(
    url: str, connections: int, clock: Callable[[], float] = time.monotonic, **changes: Any
) -> OpenPiTarget:
    return OpenPiTarget(Path(), clock, **{**FILE, "url": url, "connections": connections, **changes})


def plan(target: OpenPiTarget, robot: int) -> np.ndarray:
    seen = target.signature.observations(np.full((1, 1, 2), robot, np.float32), np.zeros((1, 0), np.float32))
    return target.propose(seen, NO_DRAWS).actions[0, 0]


def robot_of(observation: dict[str, Any]) -> int:
    return int(observation["observation/joint_position"][0])


def plan_for(robot: int) -> dict[str, Any]:
    return {"actions": np.full((4, 2), robot, np.float32)}


class Batching:
    """Answers once so many requests wait, the last one first."""

    def __init__(self, size: int) -> None:
        self._all = threading.Barrier(size)
        self._turns = [threading.Event() for _ in range(size + 1)]
        self._turns[size].set()

    def __call__(self, observation: dict[str, Any]) -> dict[str, Any]:
        robot = robot_of(observation)
        self._all.wait(20.0)
        assert self._turns[robot + 1].wait(20.0)
        time.sleep(0.001)  # the answer of the robot before should be on its way
        self._turns[robot].set()
        return plan_for(robot)


def test_a_call_for_several_robots_has_them_in_flight_together(served: PolicyServer) -> None:
    served.does = Serving(Batching(4))
    target = target_of(served.url, 4)
    window = np.arange(4, dtype=np.float32)[:, None, None] * np.ones((1, 1, 2), np.float32)
    seen = target.signature.observations(window, np.zeros((4, 0), np.float32))
    plans = target.propose(seen, np.zeros((4, 0), np.float32)).actions
    np.testing.assert_array_equal(plans[:, 0, 0], np.arange(4))


def test_few_robots_use_few_connections_and_many_wait_for_one(served: PolicyServer) -> None:
    most, now, lock = 0, 0, threading.Lock()
    released = threading.Event()

    def answer(observation: dict[str, Any]) -> dict[str, Any]:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        released.wait(20.0)
        with lock:
            now -= 1
        return plan_for(robot_of(observation))

    served.does = Serving(answer)
    target = target_of(served.url, 2)
    with ThreadPoolExecutor(3) as robots:
        plans = [robots.submit(plan, target, robot) for robot in range(3)]
        wait_for(lambda: now == 2)
        released.set()
        assert [int(each.result(20.0)[0]) for each in plans] == [0, 1, 2]
    assert most == 2
    for robot in range(5):
        plan(target, robot)
    assert len(served.headers) == 2


def test_one_that_waits_for_a_connection_too_long_fails_and_pauses_nothing(served: PolicyServer) -> None:
    released = threading.Event()
    served.does = Serving(ready=released)
    target = target_of(served.url, 1, timeout_s=0.5)
    with ThreadPoolExecutor(2) as robots:
        fates = [robots.submit(plan, target, robot) for robot in range(2)]
        messages = [str(each.exception(20.0)) for each in fates]
    assert any("not answered for" in each for each in messages)
    released.set()


@pytest.mark.parametrize("how", ["cut", "error", "nan", "shape"])
def test_the_fault_of_one_is_no_other_robots(served: PolicyServer, how: str) -> None:
    """Robot 0 gets no plan; the others are in flight meanwhile, and request again at once."""
    faulty: dict[str, Any] = {
        "error": "ValueError: no such thing",
        "nan": {"actions": np.full((4, 2), np.nan)},
        "shape": {"actions": np.zeros((4, 3))},
        "cut": b"",
    }
    arrived, failed = threading.Barrier(4), threading.Event()

    def answer(observation: dict[str, Any]) -> Any:
        robot = robot_of(observation)
        if robot < 4:
            arrived.wait(20.0)
        if robot == 0:
            return faulty[how]
        assert robot > 3 or failed.wait(20.0)
        return plan_for(robot)

    served.does = Serving(answer, cuts=lambda observation: how == "cut" and robot_of(observation) == 0)
    target = target_of(served.url, 4)
    with ThreadPoolExecutor(4) as robots:
        plans = [robots.submit(plan, target, robot) for robot in range(4)]
        with pytest.raises(TargetUnavailableError) as caught:
            plans[0].result(20.0)
        assert "next attempt" not in str(caught.value)
        failed.set()
        assert [int(each.result(20.0)[0]) for each in plans[1:]] == [1, 2, 3]
    assert [int(plan(target, robot)[0]) for robot in range(4, 8)] == [4, 5, 6, 7]


def test_a_server_that_ends_under_many_requests_is_found_again(served: PolicyServer) -> None:
    arrived, ended = threading.Barrier(9), threading.Event()

    def answer(observation: dict[str, Any]) -> Any:
        arrived.wait(20.0)
        ended.wait(20.0)
        return plan_for(0)

    served.does = Serving(answer)
    target = target_of(served.url, 8)
    with ThreadPoolExecutor(8) as robots:
        plans = [robots.submit(plan, target, robot) for robot in range(8)]
        arrived.wait(20.0)
        served.cut()
        messages = [str(each.exception(20.0)) for each in plans]
    ended.set()
    assert all("dropped the connection" in each for each in messages)
    served.does = Serving()
    assert int(plan(target, 3)[0]) == 3


def test_a_target_with_several_connections_is_called_for_each_robot_alone(served: PolicyServer) -> None:
    verifier = TargetVerifier(target_of(served.url, 4), "replace")
    assert (verifier.at_once, verifier.alone) == (4, True)
    assert not TargetVerifier(target_of(served.url, 1), "replace").alone


GROOT = {
    **FILE,
    "action_names": ["a", "b", "gripper"],
    "actions": {"single_arm": 2, "gripper": 1},
    "state": {"observation": {"size": 3, "as": {"single_arm": 2, "gripper": 1}}},
    "instruction": {"always": "pick up the cup"},
}


def test_groot_over_a_websocket_gets_a_request_per_robot(served: PolicyServer) -> None:
    def answer(observation: dict[str, Any]) -> Any:
        return actions(observation["state"]["single_arm"])

    served.does = Serving(answer, metadata={"action_keys": ["single_arm", "gripper"], "action_horizon": 5})
    target = GrootTarget(Path(), **GROOT, url=f"{served.url}/v1/realtime/robot/openpi", connections=2)
    window = np.array([[[1, 2, 3]], [[4, 5, 6]]], np.float32)
    seen = target.signature.observations(window, np.zeros((2, 0), np.float32))
    plans = target.propose(seen, np.zeros((2, 0), np.float32)).actions
    np.testing.assert_array_equal(plans[:, 1], [[2, 3, -1], [5, 6, -1]])
    received = served.received[0]
    assert received.keys() == {"video", "state", "language"}
    assert received["state"]["single_arm"].shape == (1, 1, 2)
    assert received["language"] == {"annotation.human.task_description": [["pick up the cup"]]}
    assert set(served.paths) == {"/v1/realtime/robot/openpi"}


@pytest.mark.parametrize(
    ("metadata", "fault"),
    [
        (
            {"action_keys": ["eef_9d"]},
            r"another policy: its action is eef_9d, the file's gripper, single_arm",
        ),
        ({"action_horizon": 3}, r"another policy: it plans 3 actions, the file's horizon is 4"),
    ],
)
def test_groot_over_a_websocket_must_be_the_files_policy(
    served: PolicyServer, metadata: dict[str, Any], fault: str
) -> None:
    served.does = Serving(metadata=metadata)
    target = GrootTarget(Path(), **GROOT, url=served.url)
    with pytest.raises(TargetUnavailableError, match=fault):
        target.propose(target.signature.nothing(), NO_DRAWS)
    assert not served.received


def _said(answer: Any, observation: dict[str, Any]) -> Any:
    return answer


@pytest.mark.parametrize("batch", [False, True])
def test_an_openpi_answer_may_be_bare_or_by_part(served: PolicyServer, batch: bool) -> None:
    whole = np.arange(8, dtype=np.float32).reshape(4, 2)
    shaped = whole[None] if batch else whole
    answer: Any
    for answer in (shaped, {"actions": shaped}, {"action": shaped}):
        served.does = Serving(partial(_said, answer))
        np.testing.assert_array_equal(plan(target_of(served.url, 1), 0), whole[0])
    by_part: Any = {"action.grip": shaped[..., 1:], "arm": shaped[..., :1], "unused": shaped}
    for answer in (by_part, {"actions": by_part}):
        served.does = Serving(partial(_said, answer))
        parted = target_of(served.url, 1, actions={"arm": 1, "grip": 1})
        np.testing.assert_array_equal(plan(parted, 0), whole[0])
        with pytest.raises(TargetUnavailableError, match="answered without actions"):
            plan(target_of(served.url, 1), 0)
    served.does = Serving(lambda _: {"arm": shaped})
    with pytest.raises(
        TargetUnavailableError, match=r"answered arm: shape \(1, 4, 2\), must be \(1, 4 or more, 1\)"
    ):
        plan(target_of(served.url, 1, actions={"arm": 1, "grip": 1}), 0)


def test_a_policy_that_remembers_requests_is_for_one_robot(served: PolicyServer) -> None:
    served.does = Serving(metadata={"needs_session_id": True})
    with pytest.raises(TargetUnavailableError, match="remembers a session's requests"):
        plan(target_of(served.url, 1), 0)
    assert not served.received
    alone = target_of(
        served.url, 1, metadata={"needs_session_id": True}, extra={"session_id": "arm", "observation/x": 1}
    )
    assert int(plan(alone, 3)[0]) == 3
    assert served.received[0]["session_id"] == "arm"


TOKEN = "s3cret-t0ken"


def test_a_token_is_read_from_a_file_for_each_connection(served: PolicyServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"  {TOKEN}\r\n")
    headers = {"Authorization": "Bearer @token", "X-Key": f"@{tmp_path}/token"}
    target = OpenPiTarget(tmp_path, **FILE, url=served.url, headers=headers)
    plan(target, 0)
    assert served.headers[-1]["Authorization"] == f"Bearer {TOKEN}"
    assert served.headers[-1]["X-Key"] == TOKEN
    (tmp_path / "token").write_text("other")
    target._server.close()
    plan(target, 0)
    assert served.headers[-1]["Authorization"] == "Bearer other"
    (tmp_path / "token").unlink()
    target._server.close()
    with pytest.raises(
        TargetUnavailableError, match=r"headers.Authorization: .*token', cannot be read: No such"
    ):
        plan(target, 0)


@pytest.mark.parametrize("status", [http.HTTPStatus.FOUND, http.HTTPStatus.PERMANENT_REDIRECT])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_no_header_and_no_observation_goes_where_a_server_redirects(
    served: PolicyServer, tmp_path: Path, host: str, status: http.HTTPStatus
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    other = PolicyServer()
    other.start()
    try:
        elsewhere = f"ws://{host}:{other.port}/plans"
        served.does = Serving(status=status, location=elsewhere)
        headers = {"Authorization": "Bearer @token", "X-Api-Key": "@token", "Modal-Secret": "@token"}
        target = OpenPiTarget(tmp_path, **FILE, url=served.url, headers=headers)
        with pytest.raises(TargetUnavailableError, match=f"HTTP {status}, it redirects to {elsewhere}, but "):
            plan(target, 0)
    finally:
        other.stop()
    assert served.headers[-1]["X-Api-Key"] == TOKEN
    assert (other.headers, other.received) == ([], [])


def test_no_token_is_in_a_log_or_an_error(
    served: PolicyServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    (tmp_path / "token").write_text(TOKEN)
    target = OpenPiTarget(tmp_path, **FILE, url=served.url, headers={"Authorization": "Bearer @token"})
    served.does = replace(served.does, status=http.HTTPStatus.UNAUTHORIZED)
    with pytest.raises(TargetUnavailableError, match="refused the connection: HTTP 401") as caught:
        plan(target, 0)
    seen = [str(caught.value), repr(vars(target)), target.digest, target.device]
    logged = [each.getMessage() for each in caplog.records if "server" not in each.name]
    assert not [text for text in seen + logged if TOKEN in text]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "of 0 bytes, must have one line of 1 to 8192 printable ASCII characters"),
        (b" \n", "of 2 bytes, must have one line"),
        (b"a\nX-Other: b", "must have one line"),
        (b"a\r\nb", "must have one line"),
        ("tökén".encode(), "must have one line"),
        (b"a" * 8193, "of 8193 bytes, must have one line"),
        ("folder", "cannot be read: Is a directory"),
    ],
)
def test_a_token_that_cannot_be_used_is_refused_as_the_target_is_made(
    tmp_path: Path, content: bytes | str | None, reason: str
) -> None:
    token = tmp_path / "token"
    if content == "folder":
        token.mkdir()
    elif isinstance(content, bytes):
        token.write_bytes(content)
    with pytest.raises(ValueError, match=rf"^headers.Authorization: '.*token', .*{reason}"):
        OpenPiTarget(tmp_path, **FILE, url="ws://gpu", headers={"Authorization": "Bearer @token"})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"headers": {"Authorization": "Bearer s3cret"}},
            r"must be '@FILE', or a word and a file, such as Bearer",
        ),
        ({"headers": {"A: b": "@token"}}, r"headers: 'A: b', must be letters, digits and hyphens"),
        ({"connections": 0}, r"connections: 0, must be an integer from 1 to 256"),
        ({"connections": 257}, r"connections: 257, must be an integer from 1 to 256"),
        ({"actions": {"arm": 3}}, r"actions: 3 entries in all, must be 2, as many as action_names"),
    ],
)
def test_fields_of_connections_that_cannot_be_used_are_refused(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    (tmp_path / "token").write_text("a")
    with pytest.raises(ValueError, match=reason) as caught:
        OpenPiTarget(tmp_path, **{**FILE, "url": "wss://gpu/path", **changes})
    assert "s3cret" not in str(caught.value)


def test_a_target_over_tls_and_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    secure = PolicyServer(ssl_context=context)
    secure.start()
    url = f"wss://localhost:{secure.port}/v1/robot"
    with pytest.raises(TargetUnavailableError, match="certificate verify failed"):
        plan(target_of(url, 1), 0)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert plan(target_of(url, 1, timeout_s=60.0), 3)[0] == 3
    assert secure.paths[-1] == "/v1/robot"
    secure.stop()

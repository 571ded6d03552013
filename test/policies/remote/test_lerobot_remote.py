"""A target behind a server of LeRobot's remote inference, and all that such a server may do."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

REASON = "pip install -r requirements/remote_targets.txt"
pytest.importorskip("msgpack", reason=REASON)
pytest.importorskip("zenoh", reason=REASON)

from adahi_ros.core.signature import Observations  # noqa: E402
from adahi_ros.policies.interface import TargetUnavailableError  # noqa: E402
from adahi_ros.policies.remote.lerobot_remote import LeRobotRemoteTarget  # noqa: E402
from adahi_ros.policies.remote.zenoh_connection import ZenohLink  # noqa: E402
from test.policies.remote.conftest import Clock, connected, served_by  # noqa: E402
from test.policies.remote.lerobot_server import (  # noqa: E402
    CAPABILITIES,
    PolicyServer,
    Serving,
    plan_of,
    tensor,
)
from test.waiting import wait_for  # noqa: E402

STATE = np.array([[[0.1, 0.2, 0.3]], [[0.4, 0.5, 0.6]]], np.float32)
PICTURES = np.arange(2 * 4 * 6 * 3, dtype=np.uint8).reshape(2, 1, 4, 6, 3)
SEEN = Observations(
    {"observation.state": STATE},
    {},
    ("stack the cups", "open the door"),
    {"observation.images.front": PICTURES},
    (("left", 1, 0), ("right", 1, 0)),
)
FILE: dict[str, Any] = {
    "timeout_s": 5.0,
    "horizon": 4,
    "rate_hz": 20.0,
    "deployment": "arm",
    "semantics": "two-joints-radians",
    "names": {"observation.state": ["a.pos", "b.pos", "gripper.pos"], "action": ["a.pos", "b.pos"]},
    "action_names": ["x", "y"],
    "state": {"observation.state": {"size": 3}},
    "images": {"observation.images.front": {"size": [4, 6]}},
    "instruction": True,
    "action_range": {"low": [-9, -9], "high": [9, 9]},
}
DRAWS = np.zeros((2, 0), np.float32)


served = served_by(PolicyServer)


def target_of(url: str, clock: Callable[[], float] = time.monotonic, **changes: Any) -> LeRobotRemoteTarget:
    return LeRobotRemoteTarget(Path(), clock, **{**FILE, "url": url, **changes})


def propose(target: LeRobotRemoteTarget, robots: int = 2) -> np.ndarray:
    return target.propose(SEEN.rows(np.arange(robots)), DRAWS[:robots]).actions


def fault_of(target: LeRobotRemoteTarget) -> str:
    with pytest.raises(TargetUnavailableError) as caught:
        propose(target, 1)
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_each_robot_has_its_plan(served: PolicyServer) -> None:
    plans = propose(target_of(served.url))
    np.testing.assert_array_equal(plans, STATE[:, :, :2] + np.arange(4, dtype=np.float32)[None, :, None])
    [opened] = served.of("open")
    assert opened["body"]["semantics"] == "two-joints-radians"
    assert (opened["body"]["mode"], opened["body"]["expected_artifact"]) == ("chunk", "sha256:0f")
    for row, message in enumerate(served.of("observation")):
        body = message["body"]
        np.testing.assert_array_equal(body["features"]["observation.state"], STATE[row, 0])
        np.testing.assert_array_equal(body["features"]["observation.images.front"], PICTURES[row, 0])
        assert (body["task"], body["sequence"]) == (SEEN.instructions[row], row + 1)


def test_another_episode_is_another_generation(served: PolicyServer) -> None:
    target = target_of(served.url)
    for _ in range(2):
        propose(target, 1)
    assert [each["generation"] for each in served.of("observation")] == [0, 0]
    propose(target)
    generations = [each["generation"] for each in served.of("observation")]
    assert generations == [0, 0, 0, 1]
    assert [each["body"]["operation"] for each in served.of("control")] == ["reset", "reset"]


def test_a_policy_without_a_memory_is_not_reset(served: PolicyServer) -> None:
    served.does.capabilities["retains_session_state"] = False
    propose(target_of(served.url))
    assert [each["generation"] for each in served.of("observation")] == [0, 0]


def changed(**entries: Any) -> dict[str, Any]:
    return {**deepcopy(CAPABILITIES), **entries}


def with_feature(at: int, **entries: Any) -> dict[str, Any]:
    made = deepcopy(CAPABILITIES)
    made["features"][at] |= entries
    return made


STATE_NAMES = (
    r"its observation.state: names is \['b.pos', 'a.pos', 'g'\], must be \['a.pos', 'b.pos', 'gripper.pos'\]"
)
OTHERS: list[tuple[dict[str, Any], str]] = [
    ({"about": {"semantics": "degrees"}}, r"its semantics is 'degrees', must be 'two-joints-radians'$"),
    ({"about": {"ready": False, "failure": "Policy reset\nfailed"}}, r"is not ready: Policy reset"),
    ({"about": {"artifact_identity": None}}, r"has no capabilities$"),
    ({"about": {"capabilities": []}}, r"has no capabilities$"),
    ({"capabilities": changed(modes=["rtc_guided"])}, r"modes \['rtc_guided'\], must have 'chunk'$"),
    ({"capabilities": changed(action_interval=0.1)}, r"its action_interval is 0.1, must be 0.05, of rate_hz"),
    ({"capabilities": changed(action_interval=None)}, r"its action_interval is None"),
    ({"capabilities": changed(execution_steps=3)}, r"its execution_steps is 3, must be 4 or more"),
    ({"capabilities": changed(features=[])}, r"it does not read 'observation.images.front'$"),
    ({"capabilities": changed(features=[7])}, r"it has None, the file has observation.state, "),
    ({"capabilities": changed(action_feature={})}, r"it has None, the file has"),
    ({"capabilities": with_feature(0, names=["b.pos", "a.pos", "g"])}, STATE_NAMES),
    ({"capabilities": with_feature(0, shape=[4])}, r"its observation.state: shape is \[4\], must be \[3\]"),
    ({"capabilities": with_feature(0, semantics="deg")}, r"state: semantics is 'deg', must be 'two-joints"),
    ({"capabilities": with_feature(0, dtype="float64")}, r"dtype is 'float64', must be 'float32'"),
    ({"capabilities": with_feature(1, shape=[8, 6, 3])}, r"shape is \[8, 6, 3\], must be \[4, 6, 3\]"),
    ({"capabilities": with_feature(1, name="wrist")}, r"it has 'wrist', the file has observation.state,"),
]


@pytest.mark.parametrize(("does", "message"), OTHERS)
def test_another_policy_is_named_by_what_differs(
    served: PolicyServer, does: dict[str, Any], message: str
) -> None:
    served.does = replace(served.does, **does)
    with pytest.raises(TargetUnavailableError, match=message):
        propose(target_of(served.url))
    assert not served.of("open")


def test_a_server_without_an_identity_is_refused(served: PolicyServer) -> None:
    served.instance = ""
    assert "has 0 servers of 'arm' (none), must be one" in fault_of(target_of(served.url))


def test_a_connection_that_zenoh_ended_is_one_sentence(served: PolicyServer) -> None:
    target = target_of(served.url)
    propose(target, 1)
    [link] = target._server._idle
    assert isinstance(link, ZenohLink)
    link._zenoh.close()
    assert "dropped the connection: " in fault_of(target)
    served.session = ""
    assert propose(target, 1).shape == (1, 4, 2)


def test_another_artifact_is_refused(served: PolicyServer) -> None:
    found = fault_of(target_of(served.url, artifact="sha256:aa"))
    assert found.endswith("its artifact_identity is 'sha256:0f', must be 'sha256:aa'")


NAN = np.full((5, 2), np.nan, np.float32)
ANSWERS: list[tuple[dict[str, Any], str]] = [
    ({"error": {"code": "timeout", "message": "late\nby far"}}, r"answered timeout: late$"),
    ({"error": {"code": "stale"}}, r"answered stale: None$"),
    ({"changes": {"message_type": "ack"}}, r"answered with 'ack', must be 'action'$"),
    ({"changes": {"version": 2}}, r"answered with version: 2, must be 1$"),
    ({"changes": {"body": 3}}, r"answered with body: a int, must be a mapping$"),
    ({"changes": {"request_id": "a/b"}}, r"an identity: must be letters, digits"),
    ({"answer": lambda _: "no"}, r"answered canonical_actions: str, must be \(1, 4 or more, 2\)$"),
    ({"answer": lambda _: tensor(np.zeros((3, 2)))}, r"shape \(1, 3, 2\), must be \(1, 4 or more, 2\)$"),
    ({"answer": lambda _: tensor(np.zeros((5, 3)))}, r"shape \(1, 5, 3\), must be"),
    ({"answer": lambda _: tensor(NAN)}, r"canonical_actions\[0, 0, 0\]: nan, must be finite$"),
    ({"answer": lambda _: {**tensor(NAN), "dtype": "object"}}, r"bytes that are no message"),
    ({"answer": lambda _: {**tensor(NAN), "shape": [9, 9]}}, r"bytes that are no message"),
    ({"answer": lambda _: tensor(np.full((5, 2), 9.5))}, r"action\[0\]: 9.5, must be from -9 to 9"),
    ({"answer": lambda _: bytes(2 << 20)}, r"bytes that are no message"),
]


@pytest.mark.parametrize(("does", "message"), ANSWERS)
def test_a_wrong_answer_is_one_sentence(served: PolicyServer, does: dict[str, Any], message: str) -> None:
    target = target_of(served.url)
    propose(target, 1)
    served.does = replace(served.does, **does)
    with pytest.raises(TargetUnavailableError, match=message):
        propose(target, 1)
    served.does = Serving()
    np.testing.assert_array_equal(propose(target, 1)[0, 0], STATE[0, 0, :2])


def test_an_answer_to_another_request_is_dropped(served: PolicyServer) -> None:
    clock = Clock()
    target = target_of(served.url, clock, timeout_s=0.3)
    propose(target, 1)
    for changes in ({"request_id": "other"}, {"generation": 5}, {"session_id": "other"}):
        served.does = Serving(changes=changes)
        assert "not answered in time" in fault_of(target)
        clock.now_s += 60.0
    served.does = Serving()
    np.testing.assert_array_equal(propose(target, 1)[0, 0], STATE[0, 0, :2])


def test_a_busy_server_says_who_is_in_the_way(served: PolicyServer) -> None:
    first = target_of(served.url)
    propose(first, 1)
    found = fault_of(target_of(served.url))
    wanted = "serves another client (absence_grace), stop that one; it waits 7 s for a client that is away"
    assert found == f"{served.url}: {wanted}"


def test_a_closed_target_frees_the_server(served: PolicyServer) -> None:
    target = target_of(served.url)
    propose(target, 1)
    assert served.session
    target._server.close()
    assert not served.session
    assert served.away.wait(30.0)
    propose(target_of(served.url), 1)


def test_a_server_that_comes_back_has_a_new_session(served: PolicyServer) -> None:
    clock = Clock()
    target = target_of(served.url, clock)
    propose(target, 1)
    first = served.session
    served.stop()
    wait_for(lambda: not connected(target._server))
    assert "not reachable: Connection refused" in fault_of(target)
    served.start()
    assert "next attempt in" in fault_of(target)
    clock.now_s += 60.0
    propose(target, 1)
    assert served.session not in ("", first)


def test_a_server_that_stops_during_a_request(served: PolicyServer) -> None:
    def stops(body: dict[str, Any]) -> None:
        served.stop()

    target = target_of(served.url, timeout_s=30.0)
    propose(target, 1)
    served.does = Serving(answer=stops)
    assert fault_of(target).endswith("stopped, or dropped the connection")


def test_an_address_without_zenoh_is_one_sentence(served: PolicyServer) -> None:
    found = fault_of(target_of(served.url, deployment="leg", timeout_s=0.3))
    assert found.endswith("not serving: is still starting, or has no such deployment")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"url": "ws://here:1"}, r"url: .* must be tcp://HOST:PORT or tls://HOST:PORT$"),
    ({"deployment": "a/b"}, r"deployment: 'a/b', must be letters, digits"),
    ({"history": 2}, r"history: 2, must be 1"),
    ({"names": {"state": ["a"]}}, r"names: 'state', must be one of observation.state, "),
    ({"headers": {"A": "@b"}}, r"headers: must not be there"),
    ({"zenoh": "absent.json5"}, r"zenoh: 'absent.json5', No such file"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_a_wrong_field_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LeRobotRemoteTarget(Path(), **{**FILE, "url": "tcp://here:7447", **changes})


def test_the_rate_must_be_there() -> None:
    file = {name: value for name, value in FILE.items() if name != "rate_hz"}
    with pytest.raises(ValueError, match=r"rate_hz: nothing, must be the server's `action_fps`$"):
        LeRobotRemoteTarget(Path(), **file, url="tcp://here:7447")


def test_a_wrong_file_of_zenoh_is_named(tmp_path: Path) -> None:
    (tmp_path / "zenoh.json5").write_text("{modes: 3}")
    with pytest.raises(ValueError, match=r"^zenoh: 'zenoh.json5', "):
        LeRobotRemoteTarget(tmp_path, **{**FILE, "url": "tcp://here:7447", "zenoh": "zenoh.json5"})


def test_constants_are_sent_as_features(served: PolicyServer) -> None:
    served.does.capabilities = changed(
        features=[
            *CAPABILITIES["features"],
            {**CAPABILITIES["features"][0], "name": "pad", "names": [], "shape": [2]},
        ]
    )
    propose(target_of(served.url, extra={"pad": [1, 2]}), 1)
    [message] = served.of("observation")
    np.testing.assert_array_equal(message["body"]["features"]["pad"], np.array([1, 2], np.float32))
    assert plan_of(message["body"])["shape"] == [5, 2]

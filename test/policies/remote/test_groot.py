"""A target behind a server that speaks GR00T's protocol, and all that such a server may do."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

REASON = "pip install -r requirements/remote_targets.txt"
msgpack = pytest.importorskip("msgpack", reason=REASON)
zmq = pytest.importorskip("zmq", reason=REASON)

from adahi_ros.core.signature import Observations  # noqa: E402
from adahi_ros.policies.interface import TargetUnavailableError  # noqa: E402
from adahi_ros.policies.remote.groot import GrootTarget  # noqa: E402
from test.policies.remote.conftest import Clock, connected, served_by  # noqa: E402
from test.policies.remote.groot_server import (  # noqa: E402
    PROMPT,
    PolicyServer,
    Serving,
    actions,
    answer_n15,
    answer_n16,
    answer_sim,
    modalities,
    packed,
    unpacked,
)
from test.waiting import wait_for  # noqa: E402

STATE = np.arange(12, dtype=np.float32).reshape(2, 2, 3) / 10
PICTURES = np.arange(2 * 2 * 4 * 6 * 3, dtype=np.uint32).reshape(2, 2, 4, 6, 3).astype(np.uint8)
INSTRUCTIONS = ("stack the cups", "open the door")
SEEN = Observations({"observation.state": STATE}, {}, INSTRUCTIONS, {"observation.images.front": PICTURES})
FILE = {
    "timeout_s": 5.0,
    "history": 2,
    "horizon": 4,
    "action_names": ["x", "y", "z"],
    "actions": {"single_arm": 2, "gripper": 1},
    "state": {"observation.state": {"as": {"single_arm": 2, "gripper": 1}}},
    "images": {"observation.images.front": {"size": [4, 6], "as": "front"}},
    "instruction": True,
}


served = served_by(PolicyServer)


def target_of(url: str, clock: Callable[[], float] = time.monotonic, **changes: Any) -> GrootTarget:
    return GrootTarget(Path(), clock, **{**FILE, "url": url, **changes})


def propose(target: GrootTarget) -> np.ndarray:
    return target.propose(SEEN, np.zeros((2, 0), np.float32)).actions


def fault_of(target: GrootTarget) -> str:
    with pytest.raises(TargetUnavailableError) as caught:
        propose(target)
    assert str(caught.value).isprintable()
    return str(caught.value)


EXPECTED = np.concatenate(
    [
        STATE[:, -1:, :2] + np.arange(4, dtype=np.float32)[None, :, None],
        np.broadcast_to(-np.arange(4, dtype=np.float32)[None, :, None], (2, 4, 1)),
    ],
    axis=2,
)


def test_all_robots_are_queried_about_at_once(served: PolicyServer) -> None:
    served.does = Serving(configured={})  # it says nothing of its policy
    plans = propose(target_of(served.url, extra={"waist": [1, 2]}))
    assert plans.dtype == np.float32
    np.testing.assert_array_equal(plans, EXPECTED)
    (data,) = served.received
    assert data["options"] is None
    received = data["observation"]
    assert received.keys() == {"video", "state", "language"}
    np.testing.assert_array_equal(received["video"]["front"], PICTURES)
    np.testing.assert_array_equal(received["state"]["gripper"], STATE[..., 2:])
    np.testing.assert_array_equal(
        received["state"]["waist"], np.broadcast_to(np.array([1, 2], np.float32), (2, 2, 2))
    )
    assert {each.dtype for each in received["state"].values()} == {np.dtype(np.float32)}
    assert received["language"] == {PROMPT: [[each] for each in INSTRUCTIONS]}


def test_one_that_is_served_for_simulations_receives_all_in_one_mapping(served: PolicyServer) -> None:
    served.does = Serving(answer_sim)
    np.testing.assert_array_equal(propose(target_of(served.url, protocol="n1.6_sim")), EXPECTED)
    received = served.received[0]["observation"]
    assert received.keys() == {"video.front", "state.single_arm", "state.gripper", PROMPT}
    assert received[PROMPT] == list(INSTRUCTIONS)


def test_one_of_n15_is_queried_as_it_was(served: PolicyServer) -> None:
    served.does = Serving(answer_n15, modalities("n1.5"))
    np.testing.assert_array_equal(propose(target_of(served.url, protocol="n1.5")), EXPECTED)
    received = served.received[0]
    assert received.keys() == {"video.front", "state.single_arm", "state.gripper", PROMPT}
    assert received["state.gripper"].dtype == np.float64
    assert received[PROMPT] == list(INSTRUCTIONS)


def parts(**changes: Any) -> Callable[[Any], Any]:
    """Answer with parts of which some are others."""
    return lambda _: [{**actions(STATE[..., :2]), **changes}, {}]


NAN = np.full((2, 5, 1), np.nan, np.float32)
ANSWERS: list[tuple[dict[str, Any], str]] = [
    (
        {"answer": lambda _: {"error": "'state.single_arm'\nmore"}},
        r"answered with an error: 'state.single_arm'$",
    ),
    ({"answer": lambda _: {"error": {"a": 1}}}, r"answered with an error: \{'a': 1\}$"),
    ({"answer": lambda _: b"ERROR"}, r"answered ERROR: is an early GR00T server, which reads pickles"),
    ({"answer": lambda data: (answer_n16(data), b"")}, r"answered in several parts: is no policy server"),
    ({"answer": lambda _: b"PK\x03\x04"}, r"pickled: GR00T servers before msgpack are not spoken with"),
    ({"answer": lambda _: {"single_arm": 1}}, r"answered without actions"),
    ({"answer": lambda _: []}, r"answered without actions"),
    ({"answer": parts(gripper=None)}, r"answered gripper: NoneType, must be \(2, 4 or more, 1\)"),
    (
        {"answer": parts(gripper=np.zeros((2, 5)))},
        r"answered gripper: shape \(2, 5\), must be \(2, 4 or more, 1\)",
    ),
    (
        {"answer": parts(gripper=np.zeros((2, 4, 1)))},
        r"shapes \[\(2, 5, 2\), \(2, 4, 1\)\], must be of one length",
    ),
    (
        {"answer": lambda _: [actions(STATE[:1, :, :2]), {}]},
        r"shape \(1, 5, 3\), must be \(2, 4 or more, 3\)",
    ),
    (
        {"answer": lambda _: [actions(STATE[..., :2], 3), {}]},
        r"shape \(2, 3, 3\), must be \(2, 4 or more, 3\)",
    ),
    ({"answer": parts(gripper=NAN)}, r"actions\[0, 0, 2\]: nan, must be finite"),
    (
        {"answer": lambda _: bytes(2 << 20)},
        r"dropped the connection, or answered with more than 1048576 bytes",
    ),
]
"""Answers of a server that works, of which each concerns its request only."""
AWAY: list[tuple[dict[str, Any], str]] = [
    ({"token": "s3cret"}, r"answered with an error: Unauthorized: Invalid API token"),
    ({"configured": [1]}, r"is no policy server: its modalities are a list"),
    ({"configured": {"video": 1}}, r"is no policy server: its video is no modality configuration"),
    ({"configured": {"video": {"as_json": "{"}}}, r"its video is no modality configuration"),
    ({"configured": b"\xc1"}, r"answered with 1 bytes that are no message"),
]


def configured(modality: str, keys: list[str], steps: list[int]) -> dict[str, Any]:
    changed: dict[str, Any] = {modality: {"delta_indices": steps, "modality_keys": keys}}
    return {"configured": modalities(**changed)}


OTHERS: list[tuple[dict[str, Any], str]] = [
    (
        configured("video", ["front", "wrist"], [-1, 0]),
        r"another policy: its video is front, wrist, the file's front",
    ),
    (
        configured("video", ["front"], [-15, 0]),
        r"it reads video of steps \[-15, 0\], the file's history is the newest 2",
    ),
    (
        configured("state", ["single_arm"], [-1, 0]),
        r"its state is single_arm, the file's gripper, single_arm",
    ),
    (configured("language", ["task"], [0]), rf"its language is task, the file's {PROMPT}"),
    (configured("action", ["gripper"], [0] * 5), r"its action is gripper, the file's gripper, single_arm"),
    (configured("action", ["single_arm", "gripper"], [0, 1]), r"it plans 2 actions, the file's horizon is 4"),
]


@pytest.mark.parametrize(("does", "fault"), ANSWERS, ids=[fault[:50] for _, fault in ANSWERS])
def test_an_answer_that_is_no_plan_fails_only_its_request(
    served: PolicyServer, does: dict[str, Any], fault: str
) -> None:
    target = target_of(served.url, Clock())
    served.does = Serving(**does)
    message = fault_of(target)
    assert message.startswith(f"{served.url}: ")
    assert re.search(fault, message), message
    served.does = Serving()
    np.testing.assert_array_equal(propose(target), EXPECTED)


def answer_whole(data: dict[str, Any]) -> Any:
    """Answer with one array of all parts."""
    found = actions(data["observation"]["state"]["single_arm"])
    return [np.concatenate([found["single_arm"], found["gripper"]], axis=2), {}]


def test_one_array_of_all_parts_is_a_plan_as_parts_by_name_are(served: PolicyServer) -> None:
    served.does = Serving(answer_whole)
    np.testing.assert_array_equal(propose(target_of(served.url)), EXPECTED)
    served.does = Serving(lambda data: [{"action": answer_whole(data)[0]}, {}])
    np.testing.assert_array_equal(propose(target_of(served.url)), EXPECTED)


@pytest.mark.parametrize(("does", "fault"), AWAY + OTHERS, ids=[fault[:50] for _, fault in AWAY + OTHERS])
def test_a_server_that_does_this_is_unavailable_until_it_does_not(
    served: PolicyServer, does: dict[str, Any], fault: str
) -> None:
    clock = Clock()
    target = target_of(served.url, clock)
    served.does = Serving(**does)
    message = fault_of(target)
    assert message.startswith(f"{served.url}: ")
    assert re.search(fault, message), message
    served.does = Serving()
    assert fault_of(target) == f"{message}; next attempt in 0.1 s"  # by its clock, no time went by
    clock.now_s += 0.11
    np.testing.assert_array_equal(propose(target), EXPECTED)


def test_a_stalled_server_times_out_and_its_late_answer_is_dropped(served: PolicyServer) -> None:
    clock = Clock()
    target = target_of(served.url, clock, timeout_s=0.8)
    propose(target)
    held = threading.Event()
    served.does = Serving(ready=held, answer=lambda _: [actions(STATE[..., :2] + 7), {}])
    started_s = time.monotonic()
    assert re.search(r"not answered for 0.\d+ s: is still starting, or stalls", fault_of(target))
    assert 0.7 <= time.monotonic() - started_s < 15.0
    clock.now_s += 1.0
    assert "is still starting, or stalls" in fault_of(
        target
    )  # it takes connections, and is still at the first
    served.does = Serving()
    held.set()  # and it answers, to nobody
    clock.now_s += 1.0
    np.testing.assert_array_equal(propose(target), EXPECTED)


def test_a_server_that_accepts_and_never_answers_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = target_of(f"tcp://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.2)
        started_s = time.monotonic()
        assert "not connected for 0.2 s: is still starting, or stalls" in fault_of(target)
        assert time.monotonic() - started_s < 15.0


def test_what_speaks_another_protocol_is_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def talk() -> None:
            connection, _ = other.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 10)
                connection.recv(1000)

        threading.Thread(target=talk, daemon=True).start()
        target = target_of(f"tcp://127.0.0.1:{other.getsockname()[1]}")
        assert "not reachable, or no policy server" in fault_of(target)


def test_a_server_that_starts_late_or_again_is_found_by_itself(served: PolicyServer) -> None:
    clock = Clock()
    target = target_of(served.url, clock, timeout_s=30.0)
    served.stop()
    started_s = time.monotonic()
    assert "not reachable" in fault_of(target)
    assert time.monotonic() - started_s < 15.0  # its monitor says so; it is not waited for
    served.start()
    clock.now_s += 1.0
    propose(target)
    served.stop()
    wait_for(lambda: not connected(target._server))
    served.start()  # while nobody asked
    np.testing.assert_array_equal(propose(target), EXPECTED)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"url": "http://gpu:5555"},
            r"url: 'http://gpu:5555', must be tcp://HOST:PORT or ws://HOST:PORT/PATH",
        ),
        ({"headers": {"Authorization": "@a"}}, r"headers: must not be there with url: 'tcp://127.0.0.1:9'"),
        ({"protocol": "n1.7"}, r"protocol: 'n1.7', must be one of n1.5, n1.6, n1.6_sim"),
        ({"actions": None}, r"actions: None, must be a mapping"),
        ({"actions": {"single_arm": 2}}, r"actions: 2 entries in all, must be 3, as many as action_names"),
        ({"actions": {"single_arm": 0}}, r"actions.single_arm: 0, must be an integer"),
        ({"extra": {"gripper": [1]}}, r"extra.gripper: .*, must be a list of numbers of a part of its own"),
        ({"extra": {"waist": "up"}}, r"extra.waist: 'up', must be a list of numbers"),
        ({"clock": 1}, r"clock: unknown"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=rf"^{reason}"):
        GrootTarget(Path(), **{**FILE, "url": "tcp://127.0.0.1:9", **changes})


def test_an_answer_too_many_is_no_answer_to_the_next_request() -> None:
    """The server is a ROUTER: a REP socket cannot answer twice."""
    stopped = threading.Event()
    with zmq.Context() as context, context.socket(zmq.ROUTER) as replying:
        replying.setsockopt(zmq.LINGER, 0)
        port = replying.bind_to_random_port("tcp://127.0.0.1")

        def serve() -> None:
            stale: list[list[bytes]] = []
            while not stopped.is_set():
                if replying.poll(20):
                    *envelope, message = replying.recv_multipart()
                    for parts in stale:  # arrives after the request was sent, and before its answer
                        replying.send_multipart(parts)
                    request = unpacked(message)
                    configuring = request["endpoint"] == "get_modality_config"
                    answer = packed(modalities() if configuring else answer_n16(request["data"]))
                    replying.send_multipart([*envelope, answer])
                    stale = [] if configuring else [[*envelope, answer]]

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            target = target_of(f"tcp://127.0.0.1:{port}")
            for row in (0, 1, 0, 1):
                plan = target.propose(SEEN.rows(np.array([row])), np.zeros((1, 0), np.float32)).actions
                np.testing.assert_array_equal(plan[0, 0, :2], STATE[row, -1, :2])
        finally:
            stopped.set()
            thread.join(10.0)

"""A target behind a server that speaks openpi's protocol, and all that such a server may do."""

from __future__ import annotations

import http
import re
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

REASON = "pip install -r requirements/remote_targets.txt"
pytest.importorskip("msgpack", reason=REASON)
server = pytest.importorskip("websockets.sync.server", reason=REASON)

from adahi_ros.core.signature import Observations  # noqa: E402
from adahi_ros.policies.interface import TargetUnavailableError  # noqa: E402
from adahi_ros.policies.remote.answers import plans_in  # noqa: E402
from adahi_ros.policies.remote.openpi import OpenPiTarget  # noqa: E402
from adahi_ros.policies.remote.remote import ServerFault  # noqa: E402
from test.policies.remote.conftest import Clock, connected, served_by  # noqa: E402
from test.policies.remote.openpi_server import PolicyServer, Serving, packed  # noqa: E402
from test.waiting import wait_for  # noqa: E402

STATE = np.array([[[0.1, 0.2, 0.3]], [[0.4, 0.5, 0.6]]], np.float32)
PICTURES = np.arange(2 * 4 * 6 * 3, dtype=np.uint8).reshape(2, 1, 4, 6, 3)
SEEN = Observations(
    {"observation.state": STATE},
    {},
    ("stack the cups", "open the door"),
    {"observation.images.front": PICTURES},
)
FILE = {
    "timeout_s": 5.0,
    "horizon": 4,
    "action_names": ["x", "y"],
    "state": {
        "observation.state": {"as": {"observation/joint_position": 2, "observation/gripper_position": 1}}
    },
    "images": {"observation.images.front": {"size": [4, 6], "as": "observation/exterior_image_1_left"}},
    "instruction": True,
    "action_range": {"low": [-9, -9], "high": [9, 9]},
}
DRAWS = np.zeros((2, 0), np.float32)
TRACEBACK = "Traceback (most recent call last):\n  File ...\nKeyError: 'observation/state'\n"


served = served_by(PolicyServer)


def target_of(url: str, clock: Callable[[], float] = time.monotonic, **changes: Any) -> OpenPiTarget:
    return OpenPiTarget(Path(), clock, **{**FILE, "url": url, **changes})


def propose(target: OpenPiTarget, robots: int = 2) -> np.ndarray:
    return target.propose(SEEN.rows(np.arange(robots)), DRAWS[:robots]).actions


def fault_of(target: OpenPiTarget) -> str:
    with pytest.raises(TargetUnavailableError) as caught:
        propose(target)
    assert str(caught.value).isprintable()
    return str(caught.value)


def threads_of(url: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == f"asks {url}"]


def test_each_robot_has_its_plan_by_the_policys_own_names(served: PolicyServer) -> None:
    target = target_of(served.url, extra={"mode": 3, "observation/pad": [1, 2]})
    plans = propose(target)
    assert plans.dtype == np.float32
    np.testing.assert_array_equal(plans, STATE[:, :, :2] + np.arange(4, dtype=np.float32)[None, :, None])
    for row, received in enumerate(served.received):
        assert received.keys() == {
            "observation/joint_position",
            "observation/gripper_position",
            "observation/exterior_image_1_left",
            "prompt",
            "mode",
            "observation/pad",
        }
        np.testing.assert_array_equal(received["observation/gripper_position"], STATE[row, 0, 2:])
        picture = received["observation/exterior_image_1_left"]
        assert picture.dtype == np.uint8
        np.testing.assert_array_equal(picture, PICTURES[row, 0])
        assert (received["prompt"], received["mode"]) == (SEEN.instructions[row], 3)
        np.testing.assert_array_equal(received["observation/pad"], np.array([1, 2], np.float32))
    assert len(served.headers) == 1  # one connection


def test_a_policy_may_read_mappings_in_mappings_and_channels_first(served: PolicyServer) -> None:
    images = {"observation.images.front": {"size": [4, 6], "as": "images/cam_high"}}
    target = target_of(
        served.url, nested=True, channels_first=True, images=images, instruction={"always": "go"}
    )
    propose(target, 1)
    received = served.received[0]
    np.testing.assert_array_equal(received["images"]["cam_high"], PICTURES[0, 0].transpose(2, 0, 1))
    np.testing.assert_array_equal(received["observation"]["joint_position"], STATE[0, 0, :2])
    assert received["prompt"] == "go"


NAN = np.full((5, 2), np.nan)
ANSWERS: list[tuple[dict[str, Any], str]] = [
    ({"answer": lambda _: TRACEBACK}, r"answered with an error: KeyError: 'observation/state'$"),
    ({"answer": lambda _: "busy\nreally"}, r"answered with an error: busy$"),
    ({"answer": lambda _: "\x1b[2J" + "x" * 5000}, r"answered with an error: \?\[2Jx+ ... x+$"),
    ({"answer": lambda _: b"\xc1garbage"}, r"answered with 8 bytes that are no message"),
    ({"answer": lambda _: ["a", "b"]}, r"answered with lists that are no array of numbers"),
    ({"answer": lambda _: {"plan": np.zeros((5, 2))}}, r"answered without actions"),
    ({"answer": lambda _: {"actions": {"x": np.zeros((5, 2))}}}, r"answered without actions"),
    ({"answer": lambda _: np.zeros((5, 3))}, r"shape \(1, 5, 3\), must be \(1, 4 or more, 2\)"),
    ({"answer": lambda _: np.zeros((2, 5, 2))}, r"shape \(2, 5, 2\), must be \(1, 4 or more, 2\)"),
    ({"answer": lambda _: {"type": "error", "message": "Internal"}}, r"answered with an error: Internal$"),
    ({"answer": lambda _: {"actions": [[0.0, 0.0], [0.0]]}}, r"answered with lists that are no array"),
    ({"answer": lambda _: {"actions": np.zeros((5, 3))}}, r"shape \(1, 5, 3\), must be \(1, 4 or more, 2\)"),
    ({"answer": lambda _: {"actions": np.zeros((3, 2))}}, r"shape \(1, 3, 2\), must be \(1, 4 or more, 2\)"),
    ({"answer": lambda _: {"actions": np.zeros(8)}}, r"shape \(1, 8\), must be \(1, 4 or more, 2\)"),
    ({"answer": lambda _: {"actions": np.zeros((5, 2), bool)}}, r"actions: of bool, must be numbers"),
    ({"answer": lambda _: {"actions": NAN}}, r"actions\[0, 0, 0\]: nan, must be finite"),
    ({"answer": lambda _: {"actions": np.full((5, 2), 1e300)}}, r"actions\[0, 0, 0\]: inf, must be finite"),
    ({"answer": lambda _: {"actions": np.full((5, 2), 9.5)}}, r"action\[0\]: 9.5, must be from -9 to 9"),
    ({"answer": lambda _: bytes(2 << 20)}, r"answered with more than 1048576 bytes"),
    ({"closes": True}, r"dropped the connection"),
]
"""Answers of a server that works, of which each concerns its request only."""
AWAY: list[tuple[dict[str, Any], str]] = [
    ({"status": http.HTTPStatus.UNAUTHORIZED}, r"refused the connection: HTTP 401"),
    ({"metadata": b"\xc1"}, r"is no policy server: begins with 1 bytes that are no message"),
    ({"metadata": [1]}, r"is no policy server: begins with a list, must be a mapping"),
    ({"metadata": TRACEBACK}, r"answered with an error: KeyError"),
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
    assert propose(target).shape == (2, 4, 2)


@pytest.mark.parametrize(("does", "fault"), AWAY, ids=[fault[:50] for _, fault in AWAY])
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
    assert propose(target).shape == (2, 4, 2)
    assert len(served.headers) == 2  # what the first connection still says, nobody hears


def test_a_stalled_server_times_out_and_its_late_answer_is_dropped(served: PolicyServer) -> None:
    clock = Clock()
    target = target_of(served.url, clock, timeout_s=1.0)
    assert propose(target, 1).shape == (1, 4, 2)
    held = threading.Event()
    served.does = Serving(ready=held, answer=lambda _: {"actions": np.full((5, 2), 7.0)})
    started_s = time.monotonic()
    assert re.search(r"not answered for [\d.]+ s: is still starting, or stalls", fault_of(target))
    assert 0.9 <= time.monotonic() - started_s < 15.0
    held.set()  # and it answers, to nobody
    served.does = Serving()
    clock.now_s += 0.2
    np.testing.assert_array_equal(propose(target, 1)[0, 0], STATE[0, 0, :2])


def test_a_message_without_a_request_is_no_answer_to_the_next_one(served: PolicyServer) -> None:
    target = target_of(served.url)
    propose(target, 1)
    served.say({"actions": np.full((5, 2), 7.0)})
    wait_for(lambda: not connected(target._server))
    np.testing.assert_array_equal(propose(target, 1)[0, 0], STATE[0, 0, :2])
    assert len(served.headers) == 2


def test_answers_that_come_twice_shift_no_later_answer(served: PolicyServer) -> None:
    clock = Clock()
    target = target_of(served.url, clock)
    served.does = Serving(copies=2)
    for row in (0, 1, 0, 1, 0, 1):
        clock.now_s += 10.0
        try:
            plan = target.propose(SEEN.rows(np.array([row])), DRAWS[:1]).actions
        except TargetUnavailableError as error:
            assert "sent a message without a request" in str(error)  # noqa: PT017
        else:
            np.testing.assert_array_equal(plan[0, 0], STATE[row, 0, :2])
            wait_for(lambda: not connected(target._server))


def test_no_fault_of_a_connection_is_logged_with_a_traceback(
    served: PolicyServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(protocol: Any) -> None:
        raise RuntimeError("a bug of the library")

    target = target_of(served.url)
    propose(target, 1)
    monkeypatch.setattr("websockets.client.ClientProtocol.events_received", fail)
    fault_of(target)
    for thread in threads_of(served.url):
        thread.join(10.0)
    assert not [
        record for record in caplog.records if "adahi" in record.name or record.name.endswith("client")
    ]


def test_a_server_that_accepts_and_never_answers_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = target_of(f"ws://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.2)
        started_s = time.monotonic()
        message = fault_of(target)
        assert time.monotonic() - started_s < 15.0
    assert "is still starting, or stalls" in message


def test_a_server_that_reads_nothing_blocks_no_one() -> None:
    released = threading.Event()

    def converse(connection: Any) -> None:
        connection.send(packed({}))
        released.wait(30.0)

    # Its receiving thread stops after a few frames, and what is sent is larger than the buffers of sockets.
    with server.serve(
        converse, "127.0.0.1", 0, compression=None, max_queue=1, max_size=None
    ) as reads_nothing:
        threading.Thread(target=reads_nothing.serve_forever, daemon=True).start()
        port = reads_nothing.socket.getsockname()[1]
        wide = {"observation.images.front": {"size": [2200, 2200]}}
        target = target_of(f"ws://127.0.0.1:{port}", Clock(), timeout_s=0.5, images=wide)
        large = {"observation.images.front": np.zeros((2, 1, 2200, 2200, 3), np.uint8)}
        started_s = time.monotonic()
        with pytest.raises(TargetUnavailableError, match=r"not (answered|connected) for"):
            target.propose(replace(SEEN, images=large), DRAWS)
        assert time.monotonic() - started_s < 15.0
        for thread in threads_of(f"ws://127.0.0.1:{port}"):
            thread.join(10.0)
            assert not thread.is_alive()
        released.set()
        reads_nothing.shutdown()


def test_what_is_not_there_is_queried_less_and_less_often() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    clock = Clock()
    target = target_of(f"ws://127.0.0.1:{port}", clock)
    pauses = []
    for _ in range(8):
        assert fault_of(target).endswith("not reachable: Connection refused")
        pauses.append(float(fault_of(target).split()[-2]))
        clock.now_s += pauses[-1] + 0.01
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_a_server_that_starts_late_or_again_is_found_by_itself(served: PolicyServer) -> None:
    clock = Clock()
    target = target_of(served.url, clock)
    served.stop()
    assert "not reachable" in fault_of(target)
    served.start()
    clock.now_s += 1.0
    assert propose(target).shape == (2, 4, 2)
    served.stop()
    wait_for(lambda: not connected(target._server))
    served.start()  # while nobody asked
    assert propose(target).shape == (2, 4, 2)
    served.stop()
    wait_for(lambda: not connected(target._server))
    assert "not reachable" in fault_of(target)  # the pauses begin anew
    served.start()
    clock.now_s += 0.11
    assert propose(target).shape == (2, 4, 2)


def test_it_is_made_while_its_server_is_not_there() -> None:
    target = target_of("ws://127.0.0.1:9")
    assert target.signature.horizon == 4
    assert target.signature.action_names == ("x", "y")


def test_another_policy_than_the_files_gets_no_request(served: PolicyServer) -> None:
    target = target_of(served.url, metadata={"name": "pi05_droid", "reset_pose": [0, -1.5]})
    served.does = Serving(metadata={"name": "pi0_libero", "reset_pose": [0, -1.5]})
    assert "is another policy: its metadata.name is 'pi0_libero', must be 'pi05_droid'" in fault_of(target)
    assert not served.received
    served.does = Serving(metadata={"name": "pi05_droid", "reset_pose": np.array([0, -1.5])})
    propose(target_of(served.url, metadata={"name": "pi05_droid", "reset_pose": [0, -1.5]}))


def test_the_key_is_in_no_file(served: PolicyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_KEY", "s3cret")
    propose(target_of(served.url, api_key="OUR_KEY"), 1)
    assert served.headers[0]["Authorization"] == "Api-Key s3cret"
    monkeypatch.delenv("OUR_KEY")
    with pytest.raises(ValueError, match=r"^api_key: 'OUR_KEY', must be the name of an environment variable"):
        target_of(served.url, api_key="OUR_KEY")


def test_a_target_that_is_gone_leaves_no_connection(served: PolicyServer) -> None:
    target = target_of(served.url)
    propose(target)
    mine = threads_of(served.url)
    assert len(mine) == 1
    del target
    mine[0].join(10.0)
    assert not mine[0].is_alive()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"url": None}, r"url: None, must be ws://"),
        (
            {"url": "http://gpu:8000"},
            r"url: 'http://gpu:8000', must be ws://HOST:PORT/PATH or wss://HOST:PORT/PATH",
        ),
        ({"url": "ws://"}, r"url: 'ws://', must be ws://HOST:PORT"),
        ({"url": "ws://gpu/policy?token=s3cret"}, r"url: .*, must be ws://HOST:PORT/PATH"),
        ({"url": "ws://gpu:99999"}, r"url: 'ws://gpu:99999', must be"),
        ({"url": "ws://me:secret@gpu:8000"}, r"url: .*, must be"),
        ({"timeout_s": 0}, r"timeout_s: 0, must be a number above 0"),
        ({"timeout_s": 1e9}, r"timeout_s: 1000000000.0, must be a number above 0 and at most 60"),
        ({"history": 2}, r"history: 2, must be 1, what the server takes"),
        ({"nested": "yes"}, r"nested: 'yes', must be true or false"),
        ({"extra": {"a": {}}}, r"extra.a: \{\}, must be a number, a text"),
        ({"extra": {"a": ["b"]}}, r"extra.a\[0\]: 'b', must be a number"),
        ({"extra": {"prompt": "a"}}, r"as: 'prompt', is of two, must be of one"),
        (
            {"instruction": {"as": "observation/joint_position"}},
            r"as: 'observation/joint_position', is of two",
        ),
        ({"nested": True, "extra": {"prompt/a": 1}}, r"as: 'prompt/a', must not be inside of another"),
        ({"nested": True, "extra": {"observation": 1}}, r"as: 'observation', must not have others inside"),
        ({"clock": 1}, r"clock: unknown"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=rf"^{reason}"):
        OpenPiTarget(Path(), **{**FILE, "url": "ws://127.0.0.1:9", **changes})


def test_nested_lists_of_numbers_are_plans() -> None:
    plan = [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
    found = plans_in({"actions": plan}, {}, 1, 3)
    assert found.tolist() == [plan]
    parts = {"action.arm": [plan], "gripper": [[1], [2], [3]]}
    assert plans_in(parts, {"arm": 2, "gripper": 1}, 1, 3).shape == (1, 3, 3)
    wrong: Any
    for wrong in ([[0.1, 0.2], [0.3]], [["0.1", "0.2"]], [[{}, {}]], [[True, False]]):
        with pytest.raises(ServerFault, match="answered with lists that are no array of numbers"):
            plans_in({"actions": wrong}, {}, 1, 3)

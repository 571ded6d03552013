"""A request that comes again costs the target nothing, and gets the same reply."""

from __future__ import annotations

import time
import warnings
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from adahi_msgs.srv import VerifyDraft

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.acceptance.speculative import Speculative
from adahi_ros.core.health_level import Level
from adahi_ros.core.proposal import Proposal
from adahi_ros.nodes.common.policies import policy_from
from adahi_ros.nodes.common.throttled_log import ThrottledLog
from adahi_ros.nodes.server import target_verifier_parameters
from adahi_ros.nodes.server.request_scheduler import RequestScheduler
from adahi_ros.nodes.server.robot_messages import from_request, to_reply
from adahi_ros.nodes.server.target_verifier_node import TargetVerifierNode
from adahi_ros.policies.interface import Policy
from adahi_ros.policies.slowed import SlowedPolicy
from adahi_ros.protocol.request import PROTOCOL_VERSION, RequestFault, fingerprint_number
from adahi_ros.protocol.window import SentWindows, WireWindow
from adahi_ros.server.engine import REPLIES_KEPT
from adahi_ros.server.schedule import BatchParameters
from test.nodes.in_process import nodes_in_process
from test.nodes.server.test_request_scheduler import Air

Ask = Callable[..., VerifyDraft.Response]
ROOM = 256
EVEN = [8192] * 7 + [8191]


class Counting(SlowedPolicy):
    """A policy that counts how often it proposes."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy, 0.0, self._count)
        self.proposals = 0

    def _count(self, added_s: float) -> None:
        self.proposals += 1


@pytest.fixture(scope="module")
def running(exported: Path) -> Iterator[tuple[TargetVerifierNode, Counting]]:
    """A node in this process, and its target: H 3, O 6, G 2, N 2, K 8."""
    policies: list[Counting] = []

    def counting(*arguments: Any) -> Counting:
        policies.append(Counting(policy_from(*arguments)))
        return policies[0]

    with nodes_in_process() as nodes, pytest.MonkeyPatch.context() as patch:
        patch.setattr(target_verifier_parameters, "policy_from", counting)
        values = {"checkpoint": str(exported / "target"), "cache.robots": ROOM}
        yield nodes.start(TargetVerifierNode, values), policies[0]


@pytest.fixture(scope="module")
def served(running: tuple[TargetVerifierNode, Counting]) -> tuple[Ask, Counting]:
    """What asks the node, and its target."""
    node, policy = running
    assert policy.signature.codes is not None
    good = {
        "protocol": PROTOCOL_VERSION,
        "robot_id": "robot",
        "tokenizer_fingerprint": fingerprint_number(policy.signature.codes.fingerprint),
        "observation_window": [0.5] * 18,
        "goal": [0.1, -0.1],
        "codes": [2, 5],
        "draft_probabilities": EVEN * 2,
    }

    def ask(**changes: Any) -> VerifyDraft.Response:
        first = {"first_step": changes.get("step_id", 0)}
        request = VerifyDraft.Request(**{**good, **first, **changes})
        (served,) = node._service.replies([from_request(request)], time.monotonic())
        node._served(served.refusal, served.shared)
        return to_reply(served.reply, 0.0)

    return ask, policy


def test_a_retransmitted_request_gets_the_same_reply_without_the_target(served: tuple[Ask, Counting]) -> None:
    ask, policy = served
    first, before = ask(step_id=1), policy.proposals
    assert first.status == VerifyDraft.Response.STATUS_OK
    assert ask(step_id=1) == first
    assert policy.proposals == before


@pytest.mark.parametrize(
    "change",
    [
        {"robot_id": "other"},
        {"episode_id": 1},
        {"step_id": 2},
        {"observation_window": [*[0.5] * 17, 0.25]},
        {"observation_window": [0.5] * 15},
        {"goal": [0.1, 0.1]},
        {"codes": [2, 4]},
        {"draft_probabilities": EVEN[::-1] * 2},
    ],
)
def test_another_request_is_another(served: tuple[Ask, Counting], change: dict[str, Any]) -> None:
    ask, policy = served
    ask(step_id=1)
    before = policy.proposals
    assert ask(**{"step_id": 1, **change}).status == VerifyDraft.Response.STATUS_OK
    assert policy.proposals == before + 1


def test_what_is_refused_is_refused_again(served: tuple[Ask, Counting]) -> None:
    ask, _ = served
    assert [ask(step_id=1, codes=[8, 0]).status for _ in range(2)] == [RequestFault.CODE_OUT_OF_RANGE] * 2


def test_old_replies_are_forgotten(served: tuple[Ask, Counting]) -> None:
    ask, policy = served
    for step in range(REPLIES_KEPT + 1):
        ask(episode_id=7, step_id=step)
    before = policy.proposals
    ask(episode_id=7, step_id=1)
    assert policy.proposals == before
    ask(episode_id=7, step_id=0)
    assert policy.proposals == before + 1


def test_robots_without_room_ask_once_and_get_the_same_replies(served: tuple[Ask, Counting]) -> None:
    ask, _ = served
    rows, goal = (
        np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32),
        np.array([0.1, -0.1], np.float32),
    )
    sides = {f"robot {number}": SentWindows() for number in range(ROOM + 4)}
    for step in range(3):
        window, kept = WireWindow.pack(rows[step : step + 3], goal), 0
        for name, side in sides.items():
            update = side.update(window)
            sent = {"base_window": update.base, "goal": array("f", update.goal)}
            reply = ask(
                robot_id=name, step_id=step, observation_window=array("f", update.rows.numbers), **sent
            )
            assert reply.status == VerifyDraft.Response.STATUS_OK
            whole = rows[step : step + 3].ravel().tolist()
            assert ask(robot_id=name, step_id=step, observation_window=whole, goal=goal.tolist()) == reply
            side.replied(window, reply.window_kept)
            kept += reply.window_kept
        assert 0 < kept <= ROOM


def test_two_robots_of_one_name_get_the_same_replies_and_it_is_reported(
    running: tuple[TargetVerifierNode, Counting],
    served: tuple[Ask, Counting],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    node, (ask, _) = running[0], served
    now_s = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    assert ask(robot_id="arm", session_id=1) == ask(robot_id="arm", session_id=2)
    assert node._health().values["shared_names"] == 0  # restarted, as far as anybody knows
    now_s += 2.0
    assert ask(robot_id="arm", session_id=1) == ask(robot_id="arm", session_id=2)
    assert "robot_id: 'arm', two robots use this name" in capfd.readouterr().err
    health = node._health()
    assert (health.level, health.values["shared_names"]) == (Level.WARN, 1)
    assert "two robots are named 'arm': sessions have come back 1 times" in health.message
    now_s += 60.0
    assert node._health().message == "serving"


def test_an_error_is_replied_and_reported_and_the_next_request_is_served(
    running: tuple[TargetVerifierNode, Counting],
    served: tuple[Ask, Counting],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node, (ask, policy) = running[0], served
    messages: list[str] = []
    log = SimpleNamespace(warning=lambda text, **options: messages.append(text))

    def fail(*arguments: object) -> Proposal:
        raise RuntimeError("no memory")

    node._health()
    with monkeypatch.context() as patch:
        patch.setattr(policy, "propose", fail)
        patch.setattr(node, "get_logger", lambda: log)
        patch.setattr(node, "_log", ThrottledLog(node, 0.0))
        response = ask(robot_id="unlucky", episode_id=8)
    assert response.status == VerifyDraft.Response.STATUS_INTERNAL_ERROR
    assert (response.episode_id, response.message) == (8, "RuntimeError: no memory")
    assert messages == ["refused 'unlucky', episode 8, step 0: RuntimeError: no memory"]
    health = node._health()
    assert health.level is Level.WARN
    assert health.message.startswith("1 requests refused")  # a name that was shared above may be told, too
    assert health.values["replies.internal_error"] == 1
    assert ask(robot_id="unlucky", episode_id=8).status == VerifyDraft.Response.STATUS_OK


LIES: dict[str, dict[str, Any]] = {
    "more actions than a message may have": {"actions": np.zeros((1, 700, 2), np.float32)},
    "fewer actions": {"actions": np.zeros((1, 1, 1), np.float32)},
    "flat actions": {"actions": np.zeros(2, np.float32)},
    "words": {"actions": np.full((1, 1, 2), "x")},
    "no actions": {"actions": None},
    "more parts than a message may have": {"accepted": np.zeros((1, 65), bool)},
    "fewer parts": {"accepted": np.zeros((1, 1), bool)},
    "parts of parts": {"accepted": np.zeros((1, 2, 2), bool)},
    "no parts": {"accepted": None},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_broken_verdict_is_an_internal_error_and_the_next_is_served(
    served: tuple[Ask, Counting], monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    """A policy or a rule of another package may return anything; what is said of it ends no node."""
    (ask, _), episode = served, 100 + list(LIES).index(lie)
    honest = Speculative.verify

    def lying(*arguments: Any) -> Verdict:
        return replace(honest(*arguments), **LIES[lie])

    with monkeypatch.context() as patch:
        patch.setattr(Speculative, "verify", lying)
        response = ask(robot_id="deceived", episode_id=episode)
    assert response.status == VerifyDraft.Response.STATUS_INTERNAL_ERROR
    assert response.message
    assert (response.episode_id, len(response.actions), len(response.accepted)) == (episode, 0, 0)
    assert not response.window_kept
    assert ask(robot_id="deceived", episode_id=episode).status == VerifyDraft.Response.STATUS_OK


def scheduler(node: TargetVerifierNode) -> tuple[Air, RequestScheduler]:
    """A service in the place of rclpy's, and what serves it one by one."""
    air, one = Air(), BatchParameters(size=1)
    return air, RequestScheduler({"": air}, node._service, one, node._served, node._unheard)


def test_of_the_requests_of_a_robot_that_wait_only_the_newest_is_verified(
    running: tuple[TargetVerifierNode, Counting],
) -> None:
    air, turns = scheduler(running[0])
    looked_at = RequestFault.PROTOCOL_MISMATCH
    for robot, step in (("arm", 3), ("leg", 1), ("arm", 4)):
        air.ask(robot, step, protocol=0)
    assert turns.serve()
    assert turns.wait_s == 0.0
    assert turns.most_waited() == 1  # beside the one that was served; the overtaken one does not wait
    assert turns.most_waited() == 0
    assert air.replies == [(3, RequestFault.SUPERSEDED, 0.0), (4, looked_at, 0.0)]
    air.ask("leg", 2, protocol=0)
    assert turns.serve()
    assert air.replies[2:] == [(1, RequestFault.SUPERSEDED, 0.0), (2, looked_at, 0.0)]
    assert turns.wait_s == float("inf")
    assert not turns.serve()


def test_a_reply_that_cannot_reach_its_robot_is_reported_by_name(
    running: tuple[TargetVerifierNode, Counting],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    node, _ = running
    air, turns = scheduler(node)
    before = node._service.counts.unheard
    air.ask("leg", 0)
    assert turns.serve()
    assert node._service.counts.unheard == before
    monkeypatch.setattr(air, "send_response", lambda *_: warnings.warn("timeout", RuntimeWarning, 2))
    for _ in range(2):
        air.ask("deaf", 0)
    while turns.serve():
        pass
    assert node._service.counts.unheard == before + 2
    assert "no reply reaches 'deaf', and each one delays other robots by 0.1 s" in capfd.readouterr().err
    health = node._health()
    assert health.level == Level.WARN
    assert "2 replies reached no client: a client has another reliability" in health.message
    assert "reached no client" not in node._health().message


def test_how_busy_it_is_and_where_it_computes_is_in_the_diagnostics(
    running: tuple[TargetVerifierNode, Counting], served: tuple[Ask, Counting]
) -> None:
    node, (ask, _) = running[0], served
    for step in (900, 901):
        assert ask(step_id=step).status == VerifyDraft.Response.STATUS_OK
    values = node._health().values
    assert 0.0 < float(str(values["compute_ms_p50"])) <= float(str(values["compute_ms_p95"]))
    assert values["waiting_most"] == 0
    assert values["device"] == "cpu"
    assert 0 < float(str(values["memory_bytes"])) <= float(str(values["memory_peak_bytes"]))

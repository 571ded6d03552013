"""What is left of a verifier that was cleaned up, and of requests that wait when it ends."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from rclpy.lifecycle import TransitionCallbackReturn

from adahi_lab.papers.wisv.hidden_states import HiddenStates, load_state_head
from adahi_ros.core.assets import CHECKPOINTS, asset
from adahi_ros.nodes.common import policies
from adahi_ros.nodes.server.target_verifier_node import TargetVerifierNode
from adahi_ros.nodes.server.target_verifier_parameters import TargetVerifierParameters, compute_arguments
from adahi_ros.policies.absent import AbsentPolicy
from adahi_ros.policies.interface import TargetUnavailableError
from adahi_ros.protocol.request import fingerprint_number
from adahi_ros.server.schedule import BatchParameters
from test.nodes.conftest import Make


@pytest.fixture
def make_verifier(make_node: Make, exported: Path) -> Callable[..., TargetVerifierNode]:
    """From parameters to a verifier that is not configured."""

    def make(**parameters: Any) -> TargetVerifierNode:
        given = {"checkpoint": str(exported / "target"), "autostart": False, **parameters}
        verifier: TargetVerifierNode = make_node(TargetVerifierNode, given=given)
        return verifier

    return make


@pytest.fixture
def node(make_verifier: Callable[..., TargetVerifierNode]) -> TargetVerifierNode:
    """A verifier that is active."""
    node = make_verifier()
    node.trigger_configure()
    node.trigger_activate()
    return node


def described(node: TargetVerifierNode) -> DescribeTarget.Response:
    return node._describe(DescribeTarget.Request(), DescribeTarget.Response())


def test_a_verifier_that_is_cleaned_up_keeps_no_policy(node: TargetVerifierNode) -> None:
    """The next one that it is configured with must find its memory free."""
    assert described(node).acceptance == "speculative"  # of a target with a tokenizer
    kept = weakref.ref(node._service)
    node.trigger_deactivate()
    node.trigger_cleanup()
    gc.unfreeze()
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("end", ["trigger_deactivate", "trigger_shutdown", "stop_serving"])
def test_a_waiting_request_learns_that_there_will_be_no_turn(node: TargetVerifierNode, end: str) -> None:
    """Of three, one had its turn, one waits for it, and one is still where DDS has put it."""
    come = [VerifyDraft.Request(robot_id=robot, episode_id=7, step_id=3) for robot in ("arm", "leg", "tail")]
    replies: list[Any] = []

    def take(kind: type) -> tuple[Any, Any]:
        return (come.pop(0), 3 - len(come)) if len(come) > left else (None, None)

    service = SimpleNamespace(
        handle=SimpleNamespace(service_take_request=take),
        send_response=lambda response, header: replies.append(response),
    )
    turns = node._scheduler
    assert turns is not None
    turns._services, left = {"": service}, 1
    turns._batch = BatchParameters(size=1)
    assert turns.serve()
    left = 0
    getattr(node, end)()
    assert [each.status for each in replies] == [
        VerifyDraft.Response.STATUS_PROTOCOL_MISMATCH,  # it was looked at
        *[VerifyDraft.Response.STATUS_INTERNAL_ERROR] * 2,
    ]
    assert replies[2].message == "the verifier was deactivated before the turn of this request"
    assert (replies[2].episode_id, replies[2].step_id) == (7, 3)
    assert node._scheduler is None
    node.stop_serving()  # a second time, without a second reply
    assert len(replies) == 3


def test_a_target_that_is_not_to_be_had_yet_keeps_no_verifier_from_serving(
    make_verifier: Callable[..., TargetVerifierNode],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def away(*arguments: object) -> None:
        raise TargetUnavailableError("ws://there:8000: not reachable")

    policy = AbsentPolicy(4, 0, 2)
    monkeypatch.setattr(policy, "propose", away, raising=False)
    monkeypatch.setattr(policies, "load_policy", lambda *arguments: policy)
    node = make_verifier()
    assert node.trigger_configure() is TransitionCallbackReturn.SUCCESS
    assert "target unavailable; each request tries again" in (output := capfd.readouterr().err)
    assert "ws://there:8000: not reachable" in output
    assert node.trigger_activate() is TransitionCallbackReturn.SUCCESS
    assert described(node).acceptance == "replace"  # it has no tokenizer


def test_where_it_computes_is_left_to_the_targets_file_by_default() -> None:
    assert compute_arguments(TargetVerifierParameters()) == {}
    given = TargetVerifierParameters(device="cuda:1", compile=True)
    assert compute_arguments(given) == {"device": "cuda:1", "compile": True}


TOKENS = asset(CHECKPOINTS) / "metaworld" / "tokens"
HEAD = str(TOKENS / "wisv.safetensors")


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"rule.file": HEAD, "checkpoint": str(TOKENS / "draft")}, "file: a head for the target"),
        ({"checkpoint": str(TOKENS / "target")}, "file: empty, must be a head's"),
        ({"rule.file": "/nowhere/head"}, "/nowhere/head: no such checkpoint"),
    ],
)
def test_a_head_of_another_target_is_refused_where_it_is_configured(
    make_verifier: Callable[..., TargetVerifierNode],
    capfd: pytest.CaptureFixture[str],
    parameters: dict[str, Any],
    says: str,
) -> None:
    node = make_verifier(**{"rule.name": "hidden_states"}, **parameters)
    assert node.trigger_configure() is not TransitionCallbackReturn.SUCCESS
    assert (f"rule.{says}" if says.startswith("file") else says) in capfd.readouterr().err


@pytest.mark.parametrize("channel", [0, 1])
def test_a_rule_with_the_head_of_its_target_is_configured(
    make_verifier: Callable[..., TargetVerifierNode], channel: int
) -> None:
    given = {"rule.file": HEAD, "rule.channel": channel}
    node = make_verifier(**{"rule.name": "hidden_states"}, checkpoint=str(TOKENS / "target"), **given)
    assert node.trigger_configure() is TransitionCallbackReturn.SUCCESS
    engine = node._service.targets.named("").engine
    rule = engine._terms.acceptance
    assert isinstance(rule, HiddenStates)
    assert rule.channel == channel
    head = load_state_head(Path(HEAD))
    assert described(node).policy_fingerprint == fingerprint_number(head.target) > 0


def test_a_target_that_no_robot_can_use_is_refused_when_configured(
    make_verifier: Callable[..., TargetVerifierNode],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    policy = AbsentPolicy(4, 0, 2)
    policy.signature = replace(policy.signature, history=65)
    monkeypatch.setattr(policy, "act", lambda *arguments: np.zeros((1, 1, 2)))
    monkeypatch.setattr(policies, "load_policy", lambda *arguments: policy)
    assert make_verifier(checkpoint="long").trigger_configure() is not TransitionCallbackReturn.SUCCESS
    assert "checkpoint: 'long', history: the target's is 65, must be from 1 to 64" in capfd.readouterr().err

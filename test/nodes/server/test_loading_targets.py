"""While a policy is loaded into a verifier, everybody else is served as before."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from adahi_msgs.srv import DescribeTarget, LoadTarget, VerifyDraft

from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.server import added_target
from adahi_ros.nodes.server.target_verifier_node import TargetVerifierNode
from adahi_ros.nodes.server.target_verifier_parameters import TargetVerifierParameters, served_target
from test.nodes.in_process import DEADLINE_S, NodesInProcess
from test.waiting import wait_for


class Loading:
    """A verifier that is spun, and loads a policy only once it may."""

    def __init__(self, nodes: NodesInProcess, node: TargetVerifierNode) -> None:
        self.nodes, self.node, self.may_load = nodes, node, threading.Event()
        observer = nodes.observer
        self._loading = observer.node.create_client(LoadTarget, "target_verifier/load_target")
        self._describing = observer.node.create_client(DescribeTarget, "describe_target")
        qos = verify_qos("best_effort")
        self._verifying = observer.node.create_client(VerifyDraft, "verify_draft", qos_profile=qos)

    def load(self, name: str, checkpoint: Path) -> Any:
        request = LoadTarget.Request(target=name, checkpoint=str(checkpoint))
        self.nodes.wait(self._loading.service_is_ready, "the service")
        return self._loading.call_async(request)

    def load_at_once(self, name: str, checkpoint: Path) -> LoadTarget.Response:
        return self.nodes.call(self._loading, LoadTarget.Request(target=name, checkpoint=str(checkpoint)))

    def reply(self, future: Any) -> LoadTarget.Response:
        self.nodes.wait(future.done, "a reply to load_target")
        return future.result()

    def check_serves(self) -> None:
        assert self.nodes.call(self._describing, DescribeTarget.Request()).target == "arm"
        status = self.nodes.call(self._verifying, VerifyDraft.Request(robot_id="leg")).status
        assert status == VerifyDraft.Response.STATUS_PROTOCOL_MISMATCH  # it was looked at


@pytest.fixture
def loading(nodes: NodesInProcess, exported: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loading]:
    values = {"checkpoint": str(exported / "target"), "target_name": "arm", "loads_targets": True}
    loading = Loading(nodes, nodes.start(TargetVerifierNode, values))

    def slow(*arguments: Any) -> Any:
        assert loading.may_load.wait(DEADLINE_S)
        return served_target(*arguments)

    monkeypatch.setattr(added_target, "served_target", slow)
    nodes.spin(loading.node)
    yield loading
    loading.may_load.set()


def test_robots_are_served_while_a_policy_is_loaded(loading: Loading, exported: Path) -> None:
    loaded = loading.load("spare", exported / "target")
    for _ in range(3):
        loading.check_serves()
    other = loading.load_at_once("another", exported / "target")
    assert (other.success, other.message) == (False, "target_verifier: another one is being loaded")
    assert not loaded.done()
    loading.may_load.set()
    assert loading.reply(loaded).message == "served now: 'arm', 'spare'"


def test_a_verifier_can_be_cleaned_up_while_a_policy_is_loaded(loading: Loading, exported: Path) -> None:
    loaded = loading.load("spare", exported / "target")
    loading.check_serves()
    for label in ("deactivate", "cleanup"):
        assert loading.nodes.observer.change_state("target_verifier", label, DEADLINE_S, lambda: None)
    loading.may_load.set()
    assert loading.reply(loaded).message == "target_verifier: was cleaned up while it loaded"
    again = loading.load_at_once("spare", exported / "target")
    assert again.message == "target_verifier: it is not active"


def test_nothing_is_loaded_or_unloaded_where_that_is_not_allowed(
    loading: Loading, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading.node, "_values", replace(loading.node._values, loads_targets=False))
    refused = loading.load_at_once("spare", exported / "target")
    assert not refused.success
    assert refused.message.startswith("loads_targets: False, must be true")
    loading.check_serves()


def test_what_fails_to_load_is_reported_and_another_may_be(loading: Loading, exported: Path) -> None:
    loading.may_load.set()
    refused = loading.load_at_once("x" * 60, Path("/nowhere/target"))
    assert not refused.success
    assert "'/nowhere/target', cannot be loaded" in refused.message
    # A copy of the first call may still be served: the client sends it again if the reply is slow.
    wait_for(lambda: loading.load_at_once("spare", exported / "target").success)


@pytest.mark.parametrize(("name", "intent"), [("arm", "plans/intent"), ("leg", ""), ("", "")])
def test_the_encoder_of_intents_is_for_the_default_target(
    monkeypatch: pytest.MonkeyPatch, name: str, intent: str
) -> None:
    loaded: list[TargetVerifierParameters] = []
    monkeypatch.setattr(added_target, "served_target", lambda values, *_: loaded.append(values))
    values = TargetVerifierParameters(checkpoint="ball/target", target_name=name, intent="plans/intent")
    added_target.load_target(values, "arm", lambda why: None)
    assert [each.intent for each in loaded] == [intent]

"""While a policy is loaded into a verifier, everybody else is served as before."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from adahi_msgs.srv import DescribeTarget, LoadTarget, VerifyDraft
from rclpy.parameter import Parameter

from adahi_ros.lab.nodes.domain import exclusive_domain
from adahi_ros.lab.nodes.observer import Observer
from adahi_ros.nodes.common.executors import executor_of
from adahi_ros.nodes.common.managed import started
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.server import target_verifier_node
from adahi_ros.nodes.server.target_verifier_node import TargetVerifierNode

DEADLINE_S = 30.0


class Loading:
    """A verifier that is spun, and loads what it is told only once it may."""

    def __init__(self, observer: Observer, node: TargetVerifierNode, may_load: threading.Event) -> None:
        self.observer = observer
        self.node = node
        self.may_load = may_load
        self._loading = observer.node.create_client(LoadTarget, "target_verifier/load_target")
        self._describing = observer.node.create_client(DescribeTarget, "describe_target")
        qos = verify_qos("best_effort")
        self._verifying = observer.node.create_client(VerifyDraft, "verify_draft", qos_profile=qos)

    def call(self, client: Any, request: Any) -> Any:
        return self.observer.call(client, request, DEADLINE_S)

    def load(self, name: str, checkpoint: Path) -> Any:
        request = LoadTarget.Request(target=name, checkpoint=str(checkpoint))
        self.observer.wait_until(self._loading.service_is_ready, DEADLINE_S, "the service")
        return self._loading.call_async(request)

    def load_at_once(self, name: str, checkpoint: Path) -> LoadTarget.Response:
        return self.call(self._loading, LoadTarget.Request(target=name, checkpoint=str(checkpoint)))

    def reply(self, future: Any) -> LoadTarget.Response:
        self.observer.wait_until(future.done, DEADLINE_S, "a reply to load_target")
        return future.result()

    def check_serves(self) -> None:
        assert self.call(self._describing, DescribeTarget.Request()).target == "arm"
        status = self.call(self._verifying, VerifyDraft.Request(robot_id="leg")).status
        assert status == VerifyDraft.Response.STATUS_PROTOCOL_MISMATCH  # it was looked at


@pytest.fixture
def loading(exported: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loading]:
    may_load, over = threading.Event(), threading.Event()
    with exclusive_domain() as domain:
        observer = Observer(domain, "watcher")
        node = started(
            partial(
                TargetVerifierNode,
                context=observer.context,
                use_global_arguments=False,
                parameter_overrides=[
                    Parameter("checkpoint", value=str(exported / "target")),
                    Parameter("target", value="arm"),
                    Parameter("loads_targets", value=True),
                ],
            )
        )
        load = target_verifier_node.served_target

        def slow(*arguments: Any) -> Any:
            assert may_load.wait(DEADLINE_S)
            return load(*arguments)

        monkeypatch.setattr(target_verifier_node, "served_target", slow)
        executor = executor_of(node)

        def spin() -> None:
            while not over.is_set():
                executor.spin_once(0.05)

        thread = threading.Thread(target=spin)
        thread.start()
        try:
            yield Loading(observer, node, may_load)
        finally:
            may_load.set()
            over.set()
            thread.join()
            node.destroy_node()
            observer.close()


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
        assert loading.observer.change_state("target_verifier", label, DEADLINE_S, lambda: None)
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


def test_what_fails_to_load_is_told_and_another_may_be(loading: Loading, exported: Path) -> None:
    loading.may_load.set()
    refused = loading.load_at_once("x" * 60, Path("/nowhere/target"))
    assert not refused.success
    assert "'/nowhere/target', cannot be loaded" in refused.message
    assert loading.load_at_once("spare", exported / "target").success

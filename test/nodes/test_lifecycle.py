"""A transition that fails halfway closes what was open, and the node can be configured again."""

from __future__ import annotations

from pathlib import Path

import pytest
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter

from adahi_ros.nodes.domain import exclusive_domain
from adahi_ros.nodes.draft_policy_node import DraftPolicyNode
from adahi_ros.nodes.observer import Observer
from adahi_ros.nodes.verifier_client import VerifierClient


def test_an_error_closes_everything(checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(client: VerifierClient) -> None:
        raise MemoryError

    with exclusive_domain() as domain:
        observer = Observer(domain, "watcher")
        node = DraftPolicyNode(
            context=observer.context,
            use_global_arguments=False,
            parameter_overrides=[Parameter("checkpoint", value=str(checkpoints / "draft"))],
        )

        def open_now() -> tuple[set[str], set[str], int]:
            topics = (
                {entity.topic_name for entity in entities}
                for entities in (node.publishers, node.subscriptions)
            )
            return *topics, len(list(node.clients)) + len(list(node.timers))

        try:
            before = open_now()
            for _ in range(2):
                assert node.trigger_configure() is TransitionCallbackReturn.SUCCESS
                assert open_now() != before
                with monkeypatch.context() as patch:
                    patch.setattr(VerifierClient, "start", broken)
                    assert node.trigger_activate() is TransitionCallbackReturn.ERROR
                assert open_now() == before
            assert node.trigger_configure() is TransitionCallbackReturn.SUCCESS
            assert node.trigger_shutdown() is TransitionCallbackReturn.SUCCESS
            assert open_now() == before
        finally:
            node.destroy_node()
            observer.close()

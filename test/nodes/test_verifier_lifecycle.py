"""What is left of a verifier that was cleaned up, and of requests that wait when it ends."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from adahi_msgs.srv import VerifyDraft
from rclpy.parameter import Parameter

from adahi_ros.nodes.launching.domain import exclusive_domain
from adahi_ros.nodes.launching.observer import Observer
from adahi_ros.nodes.server.target_verifier_node import TargetVerifierNode


@pytest.fixture
def node(exported: Path) -> Iterator[TargetVerifierNode]:
    """A verifier that is active."""
    with exclusive_domain() as domain:
        observer = Observer(domain, "watcher")
        node = TargetVerifierNode(
            context=observer.context,
            use_global_arguments=False,
            parameter_overrides=[
                Parameter("checkpoint", value=str(exported / "target")),
                Parameter("autostart", value=False),
            ],
        )
        node.trigger_configure()
        node.trigger_activate()
        yield node
        node.destroy_node()
        observer.close()


def test_a_verifier_that_is_cleaned_up_keeps_no_policy(node: TargetVerifierNode) -> None:
    """The next one that it is configured with must find its memory free."""
    kept = weakref.ref(node._service)
    node.trigger_deactivate()
    node.trigger_cleanup()
    gc.unfreeze()
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("end", ["trigger_deactivate", "trigger_shutdown", "serve_nobody"])
def test_who_waits_for_a_turn_is_told_that_there_will_be_none(node: TargetVerifierNode, end: str) -> None:
    """Of three, one had its turn, one waits for it, and one is still where DDS has put it."""
    come = [VerifyDraft.Request(robot_id=robot, episode_id=7, step_id=3) for robot in ("arm", "leg", "tail")]
    replies: list[Any] = []

    def take(kind: type) -> tuple[Any, Any]:
        return (come.pop(0), 3 - len(come)) if len(come) > left else (None, None)

    service = SimpleNamespace(
        srv_type=VerifyDraft,
        callback=lambda request, response: response,
        send_response=lambda response, header: replies.append(response),
    )
    (turns,) = node.urgent.turns
    turns.service, turns.handle, left = service, SimpleNamespace(service_take_request=take), 1
    assert turns.serve()
    left = 0
    getattr(node, end)()
    assert [each.status for each in replies] == [
        VerifyDraft.Response.STATUS_OK,
        *[VerifyDraft.Response.STATUS_INTERNAL_ERROR] * 2,
    ]
    assert replies[2].message == "the verifier was deactivated before the turn of this request"
    assert (replies[2].episode_id, replies[2].step_id) == (7, 3)
    assert not node.urgent.turns
    node.serve_nobody()  # and nobody twice
    assert len(replies) == 3

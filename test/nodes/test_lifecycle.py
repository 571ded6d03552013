"""What a transition leaves behind: nothing open where it failed, nothing to tidy up amid a control step."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter

from adahi_ros.nodes.robot import draft_policy_parts
from adahi_ros.nodes.robot.draft_policy_node import DraftPolicyNode
from adahi_ros.robot.loop import Totals
from adahi_ros.robot.session import VerifierSession
from test.nodes.conftest import Make

SIMULATED = {"contract": "ball", "safety.limits": "none"}


def test_an_error_closes_everything(
    make_node: Make, checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(session: VerifierSession, now_s: float) -> None:
        raise MemoryError

    node = make_node(DraftPolicyNode, given=SIMULATED | {"checkpoint": str(checkpoints / "draft")})

    def open_now() -> tuple[set[str], set[str], int]:
        published, subscribed = (
            {each.topic_name for each in entities} for entities in (node.publishers, node.subscriptions)
        )
        return published, subscribed, len(list(node.clients)) + len(list(node.timers))

    before = open_now()
    for _ in range(2):
        assert node.trigger_configure() is TransitionCallbackReturn.SUCCESS
        assert open_now() != before
        with monkeypatch.context() as patch:
            patch.setattr(VerifierSession, "start", broken)
            assert node.trigger_activate() is TransitionCallbackReturn.ERROR
        assert open_now() == before
    assert node.trigger_configure() is TransitionCallbackReturn.SUCCESS
    assert node.trigger_shutdown() is TransitionCallbackReturn.SUCCESS
    assert open_now() == before


def test_the_clock_of_a_configured_node_cannot_be_replaced(make_node: Make, checkpoints: Path) -> None:
    node = make_node(DraftPolicyNode, given=SIMULATED | {"checkpoint": str(checkpoints / "draft")})
    simulated = Parameter("use_sim_time", value=True)
    assert node.trigger_configure() is TransitionCallbackReturn.SUCCESS
    (result,) = node.set_parameters([simulated])
    assert not result.successful
    assert result.reason == "use_sim_time: can be set only while the node is unconfigured"
    assert not node._time_source.ros_time_is_active
    assert node.set_parameters([Parameter("use_sim_time", value=False)])[0].successful
    assert node.trigger_cleanup() is TransitionCallbackReturn.SUCCESS
    assert node.set_parameters([simulated])[0].successful
    assert node._time_source.ros_time_is_active


def test_what_came_of_its_steps_is_reported_at_the_end(
    make_node: Make, checkpoints: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    node = make_node(DraftPolicyNode, given=SIMULATED | {"checkpoint": str(checkpoints / "draft")})
    assert node.trigger_configure() is TransitionCallbackReturn.SUCCESS
    assert node.trigger_activate() is TransitionCallbackReturn.SUCCESS
    node._loop.totals = Totals(steps=7, transmitted=4, verified=3)
    node.hold_still()
    assert "over: 7 steps, 4 transmitted, 3 verified" in capfd.readouterr().err
    node.hold_still()
    assert "over" not in capfd.readouterr().err


@pytest.fixture
def _garbage_as_before() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_garbage_as_before")
def test_the_collector_passes_over_a_configured_policy_and_finds_it_later(
    make_node: Make, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[weakref.ref[Any]] = []
    load = vars(draft_policy_parts)["policy_from"]

    def noticed(values: Any) -> Any:
        policy: Any = load(values)
        policy.itself = policy  # only the collector can tell that nobody else has it any more
        loaded.append(weakref.ref(policy))
        return policy

    monkeypatch.setattr(draft_policy_parts, "policy_from", noticed)
    node = make_node(DraftPolicyNode, given=SIMULATED | {"checkpoint": str(exported / "draft")})
    for _ in range(2):
        assert node.trigger_configure() is TransitionCallbackReturn.SUCCESS
        assert not any(each is loaded[-1]() for each in gc.get_objects())
        assert node.trigger_cleanup() is TransitionCallbackReturn.SUCCESS
    assert loaded[1]() is not None
    assert loaded[0]() is None

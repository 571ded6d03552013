"""Robots that are named to a verifier have services of their own, which no other may use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adahi_msgs.srv import DescribeTarget, VerifyDraft

from adahi_lab.nodes.observer import Observer
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.server.target_verifier_node import TargetVerifierNode
from adahi_ros.nodes.server.target_verifier_parameters import check_robots
from test.nodes.in_process import DEADLINE_S, NodesInProcess

Start = Callable[..., TargetVerifierNode]


@pytest.fixture
def start(nodes: NodesInProcess, exported: Path) -> Start:
    """A function that starts a verifier and spins it."""

    def start(robots: list[str], *arguments: str) -> TargetVerifierNode:
        values = {"checkpoint": str(exported / "target"), "robots": robots, "batch.quota_hz": 4.0}
        node = nodes.start(TargetVerifierNode, values, cli_args=list(arguments))
        nodes.spin(node)
        return node

    return start


def client(observer: Observer, name: str) -> Any:
    return observer.node.create_client(VerifyDraft, name, qos_profile=verify_qos("best_effort"))


def services(observer: Observer, node: TargetVerifierNode, awaited: set[str]) -> set[str]:
    """Return the names of a node's services, once those are there that must be."""

    def names() -> set[str]:
        return {name for name, _ in node.get_service_names_and_types_by_node("target_verifier", "/")}

    observer.wait_until(lambda: awaited <= names(), DEADLINE_S, "the services")
    return names()


def test_each_robot_is_served_by_its_own_service_alone(observer: Observer, start: Start) -> None:
    node = start(["r1", "r2"])
    own = {f"/{robot}/{service}" for robot in ("r1", "r2") for service in ("describe_target", "verify_draft")}
    assert not {"/verify_draft", "/describe_target"} & services(observer, node, own)
    describing = observer.node.create_client(DescribeTarget, "r2/describe_target")
    assert observer.call(describing, DescribeTarget.Request(), DEADLINE_S).target
    asking = client(observer, "r2/verify_draft")
    looked_at = observer.call(asking, VerifyDraft.Request(robot_id="r2"), DEADLINE_S)
    assert looked_at.status == VerifyDraft.Response.STATUS_PROTOCOL_MISMATCH
    strange = observer.call(asking, VerifyDraft.Request(robot_id="r1"), DEADLINE_S)
    assert strange.status == VerifyDraft.Response.STATUS_UNKNOWN_ROBOT
    assert strange.message == "robot_id: 'r1', must be 'r2' on this service"


def test_who_asks_by_the_name_of_another_spends_a_quota_of_its_own(observer: Observer, start: Start) -> None:
    start(["r1", "r2"])
    wrong, right = client(observer, "r1/verify_draft"), client(observer, "r2/verify_draft")
    claimed = VerifyDraft.Request(robot_id="r2")
    statuses = [observer.call(wrong, claimed, DEADLINE_S).status for _ in range(4)]
    assert VerifyDraft.Response.STATUS_BUSY in statuses
    status = observer.call(right, VerifyDraft.Request(robot_id="r2"), DEADLINE_S).status
    assert status == VerifyDraft.Response.STATUS_PROTOCOL_MISMATCH


def test_own_services_are_where_the_service_of_all_was_remapped_to(observer: Observer, start: Start) -> None:
    node = start(["r1"], "--ros-args", "-r", "verify_draft:=/server/verify_draft")
    services(observer, node, {"/server/r1/verify_draft", "/r1/describe_target"})


def test_with_no_robot_named_any_may_ask(observer: Observer, start: Start) -> None:
    services(observer, start([""]), {"/verify_draft", "/describe_target"})


@pytest.mark.parametrize("name", ["r-1", "1r", "a/b", "/r1", "x" * 65])
def test_a_name_that_no_service_can_have_is_refused(name: str) -> None:
    with pytest.raises(ParameterError, match=f"^robots: {name!r}, must be letters"):
        check_robots(["fine", name])
    check_robots(["x" * 64])


def test_a_robot_that_is_named_twice_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^robots: 'r1', must not be there twice"):
        check_robots(["r1", "r2", "r1"])

"""What nodes open is what their policies allow: with security on, a node that opens more does not start."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.node import Node

from adahi_lab.nodes.domain import exclusive_domain
from adahi_lab.nodes.robot_simulator_node import RobotSimulatorNode
from adahi_ros.core.assets import asset
from adahi_ros.nodes.common.manager_bond import TOPIC as BOND
from adahi_ros.nodes.monitoring.bag_recorder_node import BagRecorderNode
from adahi_ros.nodes.monitoring.path_markers_node import PathMarkersNode
from adahi_ros.nodes.monitoring.top import Watcher
from adahi_ros.nodes.robot.draft_policy_node import DraftPolicyNode
from adahi_ros.nodes.robot.policy_runner_node import PolicyRunnerNode
from adahi_ros.nodes.server.target_verifier_node import TargetVerifierNode
from adahi_ros.security.policies import read_policy
from test.nodes.conftest import Make

End = tuple[str, str, str]
"""topic, service or action; what is done with it, in the words of a policy; its name in full."""

WORDS = {
    "publisher": ("topic", "publish"),
    "subscriber": ("topic", "subscribe"),
    "service": ("service", "reply"),
    "client": ("service", "request"),
}
AT_THE_SERVER = [
    f"{name}:=/server/robot/{name}" for name in ("verify_draft", "describe_target", "assignments")
]
CAMERA = {"contract": "ball_camera", "checkpoint": "ball_camera/draft"}
TARGET = {"checkpoint": "ball/target"}
WITHOUT_WAIT = {
    "verifier_wait_s": 0.0,
    "contract": "ball",
    "checkpoint": "ball/draft",
    "safety.limits": "none",
}
TAKEOVER = {"takeover.command": "joint_state", "safety.limits": str(asset("config/limits/ball.yaml"))}
CORNER = {"robot_description": str(asset("config/urdf/ball.urdf")), "tip_link": "plate_corner"}


def allowed(role: str) -> list[End]:
    """Return what a policy allows; `*` in a name is anything, slashes too."""
    found = []
    for profile in read_policy(asset("config/sros2"), role).root.iter("profile"):
        own = f"{profile.attrib['ns'].rstrip('/')}/"
        for names in profile:
            for verb in names.keys():
                for each in names:
                    name = (each.text or "").replace("~", profile.attrib["node"])
                    found.append((each.tag, verb, name if name.startswith("/") else own + name))
    return found


def allows(ends: list[End], end: End) -> bool:
    return any(end[:2] == each[:2] and fnmatchcase(end[2], each[2]) for each in ends)


def opened(node: Node) -> Iterator[End]:
    """Yield what the graph says that a node has; what an action is made of, as the action."""
    me = node.get_name(), node.get_namespace()
    for kind, (what, verb) in WORDS.items():
        for name, _ in getattr(node, f"get_{kind}_names_and_types_by_node")(*me):
            action, found, _ = name.partition("/_action/")
            serving = kind in ("publisher", "service")
            yield ("action", "execute" if serving else "call", action) if found else (what, verb, name)


@pytest.fixture
def start(make_node: Make) -> Callable[..., Node]:
    """From a node's class, namespace, remapping and parameters to the node, active."""

    def start(kind: Any, namespace: str, remapped: list[str], **parameters: Any) -> Node:
        given = parameters | ({"autostart": False} if issubclass(kind, LifecycleNode) else {})
        remapping = ["--ros-args", *(word for each in remapped for word in ("-r", each))]
        node: Node = make_node(kind, given=given, namespace=namespace, cli_args=remapping)
        if isinstance(node, LifecycleNode):
            for transition in (node.trigger_configure, node.trigger_activate):
                assert transition() is TransitionCallbackReturn.SUCCESS
        return node

    return start


@pytest.mark.parametrize(
    ("role", "kind", "namespace", "remapped", "parameters"),
    [
        ("server", TargetVerifierNode, "/server", AT_THE_SERVER, TARGET),
        ("server", TargetVerifierNode, "/server", [], TARGET | {"assigns": True}),
        ("robot", DraftPolicyNode, "/robot", AT_THE_SERVER, WITHOUT_WAIT),
        ("robot", DraftPolicyNode, "/robot", AT_THE_SERVER, WITHOUT_WAIT | CAMERA),
        ("robot", DraftPolicyNode, "/robot", AT_THE_SERVER, WITHOUT_WAIT | TAKEOVER),
        ("robot", DraftPolicyNode, "/robot", AT_THE_SERVER, WITHOUT_WAIT | TAKEOVER | {"takeover.button": 0}),
        ("robot", PolicyRunnerNode, "/robot", [], {}),
        ("drivers", RobotSimulatorNode, "/robot", [], {"task": "ball_camera"}),
        ("drivers", RobotSimulatorNode, "/robot", [], {"demonstrate": True}),
        ("drivers", PathMarkersNode, "/robot", [], CORNER),
        ("monitor", BagRecorderNode, "/", [], {}),
        ("monitor", BagRecorderNode, "/robot", [], {}),
        ("monitor", BagRecorderNode, "/robot", [], {"episodes": True}),
    ],
)
def test_what_a_node_opens_its_policy_allows(
    start: Callable[..., Node],
    tmp_path: Path,
    role: str,
    kind: Any,
    namespace: str,
    remapped: list[str],
    parameters: dict[str, Any],
) -> None:
    given = parameters | (
        {"out": str(tmp_path / "bag"), "contract": "ball"} if kind is BagRecorderNode else {}
    )
    ends = set(opened(start(kind, namespace, remapped, **given)))
    assert len(ends) > len(WORDS)
    policy = allowed(role)
    assert not [end for end in ends if not allows(policy, end)]


@pytest.mark.parametrize(
    ("role", "others"),
    [
        (
            "server",
            {("service", "reply", f"/server/*/{name}") for name in ("verify_draft", "describe_target")}
            | {("topic", "publish", "/server/*/assignments")},
        ),
        ("robot", set()),
    ],
)
def test_a_policy_allows_no_more_than_is_opened(
    start: Callable[..., Node], role: str, others: set[End]
) -> None:
    if role == "server":
        nodes = [start(TargetVerifierNode, "/server", [], assigns=True, **TARGET)]
    else:
        draft = start(DraftPolicyNode, "/robot", AT_THE_SERVER, **(WITHOUT_WAIT | CAMERA | TAKEOVER))
        nodes = [draft, start(PolicyRunnerNode, "/robot", [])]
    by_parameter = {("topic", "subscribe", "/clock")}
    if role == "robot":
        by_parameter.add(("topic", "subscribe", "/robot/joy"))  # instead of takeover
        by_parameter.add(("topic", "publish", "/robot/instruction"))  # while a goal has one
    bond = {("topic", verb, f"/{role}/{BOND}") for verb in ("publish", "subscribe")}
    expected = {end for node in nodes for end in opened(node)} | others | by_parameter | bond
    assert set(allowed(role)) == expected


def test_who_watches_opens_what_the_monitor_may() -> None:
    with exclusive_domain() as domain, Watcher(domain=domain) as watcher:
        ends = set(opened(watcher.node))
    assert ends
    policy = allowed("monitor")
    assert not [end for end in ends if not allows(policy, end)]


@pytest.mark.parametrize("role", ["robot", "drivers", "monitor", "operator"])
def test_only_the_verifier_may_answer_or_receive_a_request(role: str) -> None:
    """A service's server hears its requests."""
    policy = allowed(role)
    for robot, name in itertools.product(("robot/", "other/", ""), ("verify_draft", "describe_target")):
        assert not allows(policy, ("service", "reply", f"/server/{robot}{name}"))


@pytest.mark.parametrize("role", ["robot", "drivers", "monitor", "operator"])
def test_no_other_role_may_publish_assignments(role: str) -> None:
    for name in ("assignments", "robot/assignments"):
        assert not allows(allowed(role), ("topic", "publish", f"/server/{name}"))
    assert allows(allowed(role), ("service", "request", "/server/target_verifier/assign")) == (
        role == "operator"
    )


def test_a_robot_may_ask_by_its_own_services_alone() -> None:
    requested = {name for what, verb, name in allowed("robot") if (what, verb) == ("service", "request")}
    assert {name for name in requested if name.startswith("/server/")} == {
        "/server/robot/describe_target",
        "/server/robot/verify_draft",
    }
    assert not allows(allowed("drivers"), ("service", "request", "/server/robot/verify_draft"))

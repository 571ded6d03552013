"""When a managed node has a bond with a lifecycle manager; with bondpy itself, see test/system."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from std_msgs.msg import Header

from adahi_lab.nodes.observer import Observer
from adahi_ros.nodes.common.managed import ManagedNode, ManagedParameters
from adahi_ros.nodes.common.parameters import parameter
from adahi_ros.nodes.robot.mock_arm import MockArm
from adahi_ros.nodes.robot.policy_runner_node import PolicyRunnerNode
from test.nodes.conftest import Make
from test.nodes.in_process import DEADLINE_S

BONDPY = "bondpy.bondpy"


@dataclass(frozen=True)
class Values(ManagedParameters):
    autostart: bool = parameter(False, "")


class Managed(ManagedNode):
    fails = False

    def _open(self, values: Values) -> None:
        pass

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        activated = super().on_activate(state)
        if self.fails:
            raise MemoryError
        return activated


class Bond:
    """What is used of bondpy's, which no wheel brings."""

    made: list[Bond]

    def __init__(self, node: Any, topic: str, name: str) -> None:
        self.what = topic, name
        self.events: list[str] = []
        self.pub, self.sub = node.create_publisher(Header, topic, 1), None
        self.made.append(self)

    def start(self) -> None:
        self.events.append(f"start {self.heartbeat_period:g} {self.heartbeat_timeout:g}")  # type: ignore[attr-defined]

    def break_bond(self) -> None:
        self.events.append("break")

    def shutdown(self) -> None:
        self.events.append("shutdown")


@pytest.fixture
def bonds(monkeypatch: pytest.MonkeyPatch) -> list[Bond]:
    """Those that are made."""
    stand_in = ModuleType(BONDPY)
    stand_in.Bond = Bond  # type: ignore[attr-defined]
    monkeypatch.setattr(Bond, "made", [], raising=False)
    monkeypatch.setitem(sys.modules, BONDPY.split(".")[0], ModuleType("bondpy"))
    monkeypatch.setitem(sys.modules, BONDPY, stand_in)
    return Bond.made


@pytest.fixture
def make(make_node: Make) -> Make:
    return lambda **values: make_node(Managed, "managed", Values, given=values)


def test_once_it_is_destroyed_its_domain_has_it_no_more(make: Make, observer: Observer) -> None:
    node = make()
    names = observer.node.get_node_names
    observer.wait_until(lambda: "managed" in names(), DEADLINE_S, "the node")
    node.destroy_node()
    assert "managed" not in names()


@pytest.mark.parametrize("kind", [MockArm, PolicyRunnerNode, partial(Managed, "managed", Values)])
def test_a_node_that_is_destroyed_twice_leaves_nothing(make_node: Make, kind: Any) -> None:
    """The fixtures destroy it again, and look whether anything is left."""
    make_node(kind).destroy_node()


FORMED, DISSOLVED = ["start 0.1 4"], ["start 0.1 4", "break", "shutdown"]


@pytest.mark.parametrize("end", ["trigger_deactivate", "trigger_shutdown", "destroy_node"])
def test_a_bond_is_there_while_the_node_is_active(make: Make, bonds: list[Bond], end: str) -> None:
    node = make()
    publishers = len(list(node.publishers))
    node.trigger_configure()
    assert not bonds
    node.trigger_activate()
    (bond,) = bonds
    assert (bond.what, bond.events) == (("bond", "managed"), FORMED)
    getattr(node, end)()
    assert bond.events == DISSOLVED
    if end == "trigger_deactivate":
        assert len(list(node.publishers)) == publishers
        node.trigger_activate()
        assert [each.events for each in bonds] == [DISSOLVED, FORMED]


def test_an_activation_that_fails_after_all_leaves_none(make: Make, bonds: list[Bond]) -> None:
    node = make()
    node.fails = True
    node.trigger_configure()
    assert node.trigger_activate() is not TransitionCallbackReturn.SUCCESS
    assert [each.events for each in bonds] == [DISSOLVED]


@pytest.mark.parametrize("values", [{"bond_heartbeat_period": 0.0}, {"autostart": True}])
def test_there_is_none_unless_one_is_requested(make: Make, bonds: list[Bond], values: dict[str, Any]) -> None:
    node = make(**values)
    node.trigger_configure()
    assert node.trigger_activate() is TransitionCallbackReturn.SUCCESS
    assert not bonds


@pytest.mark.parametrize("of_pypi", [False, True])  # which has a bondpy of other things
def test_without_bondpy_a_node_is_active_without_a_bond_and_says_so_once(
    make: Make, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], of_pypi: bool
) -> None:
    monkeypatch.setitem(sys.modules, "bondpy", ModuleType("bondpy") if of_pypi else None)
    monkeypatch.delitem(sys.modules, BONDPY, raising=False)
    node = make()
    node.trigger_configure()
    for _ in range(2):
        assert node.trigger_activate() is TransitionCallbackReturn.SUCCESS
        node.trigger_deactivate()
    assert capfd.readouterr().err.count("no bond with a lifecycle manager: bondpy is not installed") == 1


def test_what_a_node_destroys_has_no_events_that_could_still_wait(make_node: Make) -> None:
    """An incompatible subscription that appears as a publisher is destroyed ended the process."""
    node = make_node(Managed, "managed", Values)
    assert not node.create_publisher(Header, "out", 1).event_handlers
    assert not node.create_lifecycle_publisher(Header, "out", 1).event_handlers
    assert not node.create_subscription(Header, "in", lambda _: None, 1).event_handlers

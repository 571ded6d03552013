"""What the tests of nodes and of launch files share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.parameter import Parameter

from adahi_lab.nodes.domain import exclusive_domain
from adahi_lab.nodes.observer import Observer
from test.nodes.in_process import NodesInProcess

Make = Callable[..., Any]


def participants() -> int:
    """Return in how many domains Fast DDS has this process."""
    threads = []
    for name in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # it may just have ended
            threads.append(name.read_text())
    return sum(name.startswith("dds.ev") for name in threads)


def destroy(node: LifecycleNode) -> None:
    """End a node that is only rclpy's, which keeps a part of it; `ManagedNode` lets go of that by itself."""
    node.destroy_node()
    node._state_machine.destroy_when_not_in_use()


@contextmanager
def observing(*names: str) -> Iterator[list[Observer]]:
    """Yield observers of these names, alone in a domain.

    The next test may get the same domain, where a node that is left would stand in for its own.
    """
    before = participants()
    with exclusive_domain() as domain:
        observers = [Observer(domain, name) for name in names]
        yield observers
        for observer in reversed(observers):
            observer.close()
    assert participants() <= before, "a node of this test was not destroyed"


@pytest.fixture
def observer() -> Iterator[Observer]:
    """A node beside those of a test, in a domain of its own."""
    with observing("watcher") as (observer,):
        yield observer


@pytest.fixture
def make_node(observer: Observer) -> Iterator[Make]:
    """From a node's class, its parameters and rclpy's options to a node that ends with the test."""
    nodes: list[Node] = []

    def make(kind: Make, *arguments: Any, given: Mapping[str, Any] | None = None, **options: Any) -> Any:
        overrides = [Parameter(name, value=value) for name, value in (given or {}).items()]
        options = {"use_global_arguments": False, "parameter_overrides": overrides, **options}
        nodes.append(kind(*arguments, context=observer.context, **options))
        return nodes[-1]

    yield make
    for node in nodes:
        node.destroy_node()


@pytest.fixture
def nodes(observer: Observer) -> Iterator[NodesInProcess]:
    """Nodes in this process that are spun, and what ends them."""
    nodes = NodesInProcess(observer)
    yield nodes
    nodes.close()


@pytest.fixture
def ends() -> Iterator[list[Observer]]:
    """The two ends of a service in one domain: server and robot."""
    with observing("server", "robot") as observers:
        yield observers


@pytest.fixture
def sourced_workspace() -> None:
    """Skip where `ros2 launch` would not find this package's nodes."""
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix

    try:
        prefix = Path(get_package_prefix("adahi_ros"))
    except PackageNotFoundError:
        pytest.skip("adahi_ros is not built by colcon in a sourced workspace")
    if not (prefix / "lib" / "adahi_ros" / "draft_policy_node").exists():
        pytest.skip("adahi_ros is not built by colcon in a sourced workspace")

"""What the tests of nodes and of launch files share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adahi_ros.lab.nodes.domain import exclusive_domain
from adahi_ros.lab.nodes.observer import Observer
from test.nodes.in_process import NodesInProcess, nodes_in_process


@pytest.fixture
def nodes() -> Iterator[NodesInProcess]:
    """Nodes in this process, and what ends them."""
    with nodes_in_process() as nodes:
        yield nodes


@pytest.fixture
def ends() -> Iterator[tuple[Observer, Observer]]:
    """The two ends of a service in one domain: server and robot."""
    with exclusive_domain() as domain:
        server, robot = Observer(domain, "server"), Observer(domain, "robot")
        yield server, robot
        robot.close()
        server.close()


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

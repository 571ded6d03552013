"""Nodes under a middleware with a name that no code knows: they work, and no message names another one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adahi_lab.nodes.domain import exclusive_domain, loopback_environment
from adahi_lab.nodes.observer import Observer
from adahi_ros.nodes.launching.child_processes import node_processes
from test.system.conftest import UDP_ONLY
from test.system.stage import Robot, Stage

REAL, MADE_UP = "rmw_fastrtps_cpp", "rmw_made_up_name"  # of one length: one replaces the other in a library

SENSIBLE = "safety.limits: ", "deadline_s: ", "ROS_SECURITY_ENABLE: "  # warnings of any middleware


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables by which a node runs on a copy of a middleware that calls itself by a made-up name."""
    assert len(REAL) == len(MADE_UP)
    folders = [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)]
    found = next(
        (folder / f"lib{REAL}.so" for folder in folders if (folder / f"lib{REAL}.so").is_file()), None
    )
    if found is None:
        pytest.skip(f"no lib{REAL}.so to copy")
    identifier = f"{REAL}\0".encode()
    content = found.read_bytes()
    assert content.count(identifier) == 1
    folder = tmp_path_factory.mktemp("middleware")
    for name in (REAL, MADE_UP):  # linked by the wheels, looked up by name elsewhere
        (folder / f"lib{name}.so").write_bytes(content.replace(identifier, f"{MADE_UP}\0".encode()))
    libraries = os.pathsep.join([str(folder), os.environ["LD_LIBRARY_PATH"]])
    return {"LD_LIBRARY_PATH": libraries, "RMW_IMPLEMENTATION": MADE_UP}


@pytest.fixture
def stage(made_up: dict[str, str]) -> Iterator[Stage]:
    """A domain of nodes with the made-up middleware; the observer has the real one."""
    with exclusive_domain() as domain:
        environment = loopback_environment(domain) | UDP_ONLY | made_up
        with node_processes(environment) as processes:
            observer = Observer(domain, "test")
            try:
                yield Stage(domain, observer, processes)
            finally:
                observer.close()


def test_the_nodes_have_the_made_up_name(made_up: dict[str, str]) -> None:
    code = "import rclpy; print(rclpy.get_rmw_implementation_identifier())"
    environment = {**os.environ, **made_up}
    command = [sys.executable, "-c", code]
    assert subprocess.check_output(command, env=environment, text=True, timeout=60).strip() == MADE_UP


def test_robot_and_verifier_work_and_say_nothing_of_another_middleware(stage: Stage, exported: Path) -> None:
    verifier = stage.start_verifier(exported)
    draft = stage.start_draft(exported, command__lockstep=True)
    stage.activate()
    Robot(stage).show_until_commanded(1)
    for process in (draft, verifier):
        output = stage.end(process)
        assert not re.search("dds|rtps|eprosima", output, re.IGNORECASE), output
        lines = re.findall(r"^\[(\w+)\] \[[\d.]+\] \[\w+\]: (.*)", output, re.MULTILINE)
        assert lines
        for level, message in lines:
            ours = level == "WARN" and message.startswith(SENSIBLE)
            assert level == "INFO" or ours, message


def test_a_middleware_that_is_not_installed_is_named(made_up: dict[str, str]) -> None:
    environment = {**os.environ, "RMW_IMPLEMENTATION": "rmw_not_installed"}
    for module in ("adahi_ros.nodes.robot.draft_policy_node", "adahi_ros.nodes.server.target_verifier_node"):
        ended = subprocess.run(
            [sys.executable, "-m", module],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode != 0
        assert "rmw_not_installed" in ended.stderr
        assert "Traceback" not in ended.stderr

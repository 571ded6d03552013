"""The launch files as `ros2 launch` reads them; needs launch_ros, which no wheel brings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adahi_ros.assets import asset

launch = pytest.importorskip("launch", reason="launch is not on PyPI; needs a sourced ROS 2")
pytest.importorskip("launch_ros", reason="launch_ros is not on PyPI; needs a sourced ROS 2")

LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

file, *arguments = sys.argv[1:]
pairs = [argument.split(":=") for argument in arguments]
include = IncludeLaunchDescription(PythonLaunchDescriptionSource(file), launch_arguments=pairs)
service = LaunchService()
service.include_launch_description(LaunchDescription([include]))
sys.exit(service.run())
"""
JOBS = ("draft", "verifier", "simulation", "all")


def description_of(job: str) -> Any:
    from launch.launch_description_sources import get_launch_description_from_python_launch_file

    return get_launch_description_from_python_launch_file(str(asset(f"launch/{job}.launch.py")))


@pytest.mark.parametrize("job", JOBS)
def test_every_argument_has_a_default_and_a_description(job: str) -> None:
    arguments = description_of(job).get_launch_arguments()
    assert arguments
    for argument in arguments:
        assert argument.default_value is not None, argument.name
        assert argument.description, argument.name


def test_all_takes_the_arguments_of_every_job() -> None:
    def names(job: str) -> set[str]:
        return {argument.name for argument in description_of(job).get_launch_arguments()}

    assert names("all") == names("draft") | names("verifier") | names("simulation")


@pytest.mark.parametrize(
    ("job", "executables"),
    [
        ("draft", ["draft_policy_node"]),
        ("verifier", ["target_verifier_node"]),
        ("simulation", ["robot_simulator_node"]),
    ],
)
def test_one_job_per_file(job: str, executables: list[str]) -> None:
    from launch.actions import ExecuteLocal

    nodes = [entity for entity in description_of(job).entities if isinstance(entity, ExecuteLocal)]
    assert [node.node_executable for node in nodes] == executables


def test_all_runs_to_the_end_of_its_episodes() -> None:
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix

    from adahi_ros.nodes.domain import exclusive_domain, loopback_environment

    try:
        prefix = Path(get_package_prefix("adahi_ros"))
    except PackageNotFoundError:
        pytest.skip("adahi_ros is not built by colcon in a sourced workspace")
    if not (prefix / "lib" / "adahi_ros" / "draft_policy_node").exists():
        pytest.skip("adahi_ros is not built by colcon in a sourced workspace")
    arguments = [str(asset("launch/all.launch.py")), "lockstep:=true", "episodes:=2"]
    with exclusive_domain() as domain:
        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *arguments],
            env={**os.environ, **loopback_environment(domain)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, output
    assert "episode 1: " in output
    assert "Traceback" not in output

"""The launch files as `ros2 launch` reads them; needs launch_ros, which no wheel brings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

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
FILES = {
    "params_file": str(asset("config/ball.yaml")),
    "verifier_params_file": str(asset("config/verifier.yaml")),
}


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


def node_of(job: str, **arguments: str) -> Any:
    """Return a file's node as it is started with launch arguments."""
    from launch import LaunchContext
    from launch.actions import DeclareLaunchArgument, ExecuteLocal

    context = LaunchContext()
    context.launch_configurations.update(arguments)
    description = description_of(job)
    for entity in description.entities:
        if isinstance(entity, DeclareLaunchArgument):
            entity.visit(context)
    (node,) = (entity for entity in description.entities if isinstance(entity, ExecuteLocal))
    node._perform_substitutions(context)
    return node


def parameters_of(node: Any) -> dict[str, Any]:
    given = node._Node__expanded_parameter_arguments
    parameters: dict[str, Any] = {}
    for file, is_file in given:
        assert is_file
        for section in yaml.safe_load(Path(file).read_text()).values():
            parameters |= section.get("ros__parameters", {})
    return parameters


@pytest.mark.parametrize(("job", "name"), [("draft", "robot_id"), ("simulation", "task")])
@pytest.mark.parametrize("value", ["7", "1.5", "true", "arm"])
def test_strings_stay_strings(job: str, name: str, value: str) -> None:
    node = node_of(job, **FILES, **{name: value})
    assert parameters_of(node)[name] == value


@pytest.mark.parametrize("job", JOBS[:3])
def test_sim_time(job: str) -> None:
    assert parameters_of(node_of(job, **FILES))["use_sim_time"] is False
    assert parameters_of(node_of(job, **FILES, use_sim_time="true"))["use_sim_time"] is True


@pytest.mark.parametrize("job", ["draft", "verifier"])
@pytest.mark.parametrize(
    ("namespace", "prefix"), [("", ""), ("/", "/"), ("/server", "/server/"), ("server", "server/")]
)
def test_robots_in_namespaces_can_share_a_verifier(job: str, namespace: str, prefix: str) -> None:
    node = node_of(job, **FILES, namespace="r1", verifier_namespace=namespace)
    services = ("describe_target", "verify_draft")
    assert node.expanded_remapping_rules == [(name, f"{prefix}{name}") for name in services]


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

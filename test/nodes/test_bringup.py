"""What brings a Panda up: its description, mock hardware and its simulation; needs launch_ros."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from adahi_ros.core.assets import asset

pytest.importorskip("launch_ros", reason="launch_ros is not on PyPI; needs a sourced ROS 2")

OTHERS = ("robot_state_publisher", "rviz2", "controller_manager")
FILES = ("description", "panda", "panda_mock")
MOCK = asset("launch/panda_mock.launch.py")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what puts packages, of stand-ins, into an environment that has none but this one."""
    index = tmp_path / "share/ament_index/resource_index/packages"
    index.mkdir(parents=True)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))

    def install(*packages: str) -> None:
        for package in ("adahi_ros", *packages):
            (index / package).touch()
            (tmp_path / "lib" / package).mkdir(parents=True)
            for executable in (package, "robot_simulator_node", "ros2_control_node", "spawner"):
                (tmp_path / "lib" / package / executable).touch(mode=0o755)

    return install


@dataclass(frozen=True)
class Started:
    """A node as a launch file starts it."""

    arguments: list[str]
    remapped: dict[str, str]
    parameters: dict[str, Any]


def started(job: str, **given: str) -> dict[str, Started]:
    """Return the nodes that a launch file starts, by executable, in this order."""
    from launch import LaunchContext
    from launch.actions import ExecuteLocal
    from launch.launch_description_sources import get_launch_description_from_python_launch_file
    from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

    context = LaunchContext()
    context.launch_configurations.update(given)
    nodes = {}

    def visit(entity: Any) -> None:
        for each in [] if isinstance(entity, ExecuteLocal) else entity.visit(context) or ():
            visit(each)
        if isinstance(entity, ExecuteLocal):
            entity._perform_substitutions(context)  # here, while the remappings of its group hold
            parameters: dict[str, Any] = {}
            for file, _ in entity._Node__expanded_parameter_arguments or ():
                for section in yaml.safe_load(Path(file).read_text()).values():
                    parameters |= section.get("ros__parameters", {})
            nodes[entity.node_executable] = Started(
                [
                    perform_substitutions(context, normalize_to_list_of_substitutions(argument))
                    for argument in entity._Node__arguments or ()
                ],
                dict(entity.expanded_remapping_rules or ()),
                parameters,
            )

    visit(get_launch_description_from_python_launch_file(str(asset(f"launch/{job}.launch.py"))))
    return nodes


@pytest.mark.parametrize("job", FILES)
def test_every_argument_has_a_description_and_a_default(job: str) -> None:
    from launch.launch_description_sources import get_launch_description_from_python_launch_file

    description = get_launch_description_from_python_launch_file(str(asset(f"launch/{job}.launch.py")))
    arguments = description.get_launch_arguments()
    assert {"urdf", "rviz", "robot_state_publisher"} <= {argument.name for argument in arguments}
    for argument in arguments:
        assert argument.description, argument.name
        assert argument.default_value is not None, argument.name


@pytest.mark.parametrize("job", FILES)
def test_an_argument_that_no_one_takes_is_reported(job: str, caplog: pytest.LogCaptureFixture) -> None:
    from launch import LaunchContext
    from launch.launch_description_sources import get_launch_description_from_python_launch_file

    context = LaunchContext(argv=["rvizz:=true"])
    context.launch_configurations["rvizz"] = "true"
    file = str(asset(f"launch/{job}.launch.py"))
    get_launch_description_from_python_launch_file(file).entities[0].visit(context)
    assert "rvizz: no argument of this launch file, ignored; did you mean rviz?" in caplog.text


def test_what_is_not_installed_is_reported_and_the_rest_starts(
    installed: Any, caplog: pytest.LogCaptureFixture
) -> None:
    installed()
    assert list(started("panda", rviz="auto")) == ["robot_simulator_node"]
    for package in ("robot_state_publisher", "rviz2"):
        apt = package.replace("_", "-")
        assert (
            f"{package} is not installed, and not started: apt install ros-$ROS_DISTRO-{apt}" in caplog.text
        )


@pytest.mark.parametrize(
    ("job", "arguments", "says"),
    [
        (
            "panda",
            {"robot_state_publisher": "true"},
            "robot_state_publisher:=true needs robot_state_publisher",
        ),
        ("panda", {"rviz": "true"}, "rviz:=true needs rviz2, which is not installed: apt install"),
        ("panda_mock", {}, "panda_mock.launch.py needs controller_manager, which is not installed"),
        ("panda", {"urdf": "nope.urdf"}, "urdf: there is no file .*nope.urdf"),
        ("panda_mock", {"controllers": "nope.yaml"}, "controllers: there is no file .*nope.yaml"),
        ("description", {"urdf": str(MOCK)}, "urdf: .* is no XML"),
        ("description", {"urdf": str(asset("package.xml"))}, r"has \[\] as its first links, must have one"),
    ],
)
def test_what_cannot_be_started_is_named_before_anything_is(
    job: str, arguments: dict[str, str], says: str, installed: Any
) -> None:
    installed()
    with pytest.raises(ValueError, match=says):
        started(job, **arguments)


def test_nothing_is_reported_of_what_no_one_wants(installed: Any, caplog: pytest.LogCaptureFixture) -> None:
    installed()
    assert list(started("panda", robot_state_publisher="false")) == ["robot_simulator_node"]
    assert "not installed" not in caplog.text


def test_the_simulated_panda_is_described_and_seen_from_its_base(installed: Any) -> None:
    installed(*OTHERS)
    nodes = started("panda", rviz="true", joint_states="/arm/joint_states", use_sim_time="true")
    text = asset("config/urdf/panda_kitchen.urdf").read_text()
    assert nodes["robot_state_publisher"].parameters == {"robot_description": text, "use_sim_time": True}
    for executable in ("robot_state_publisher", "robot_simulator_node"):
        assert nodes[executable].remapped["joint_states"] == "/arm/joint_states"
    assert nodes["rviz2"].arguments == ["-d", str(asset("config/rviz/adahi.rviz")), "-f", "panda_link0"]


def test_mock_hardware_has_the_topics_of_a_real_panda(installed: Any) -> None:
    from adahi_ros.contract.parsing import load_contract

    installed(*OTHERS)
    nodes = started("panda_mock")
    assert list(nodes) == ["robot_state_publisher", "ros2_control_node", "spawner"]
    *_, option, given = nodes["spawner"].arguments
    assert (option, nodes["ros2_control_node"].remapped) == ("--controller-ros-args", {})
    renamed = dict(each.split(":=") for each in given.split()[2::2])
    assert nodes["robot_state_publisher"].remapped["joint_states"] == renamed["joint_states"]
    contract = load_contract("franka_panda")
    assert {source.channel.topic for source in contract.numbers} <= set(renamed.values())
    arm, gripper = (sink.source.channel.topic for sink in contract.action.sinks)
    assert arm == "joint_trajectory_controller/joint_trajectory"  # as it is
    parts = ("send_goal", "cancel_goal", "get_result", "feedback", "status")
    assert {f"{gripper}/_action/{part}" for part in parts} <= set(renamed.values())


def test_mock_hardware_starts_the_shipped_controllers_or_given_ones(installed: Any, tmp_path: Path) -> None:
    installed(*OTHERS)
    nodes = started("panda_mock")
    assert nodes["ros2_control_node"].parameters["update_rate"] == 250
    file = tmp_path / "mine.yaml"
    file.write_text("controller_manager: {ros__parameters: {update_rate: 1000}}")
    nodes = started("panda_mock", controllers=str(file))
    assert nodes["ros2_control_node"].parameters == {"update_rate": 1000}
    types = yaml.safe_load(asset("config/controllers/panda.yaml").read_text())["controller_manager"]
    names = [name for name, value in types["ros__parameters"].items() if isinstance(value, dict)]
    assert nodes["spawner"].arguments[:-2] == [*names, "--param-file", str(file)]


def test_a_panda_and_its_policy_come_up_and_end_with_0(sourced_workspace: None) -> None:
    pytest.importorskip("launch_testing", reason="launch_testing is not on PyPI; needs a sourced ROS 2")
    from adahi_lab.nodes.domain import exclusive_domain, loopback_environment

    file = Path(__file__).with_name("bringup.py")
    with exclusive_domain() as domain:
        run = subprocess.run(
            [sys.executable, "-m", "launch_testing.launch_test", str(file)],
            env={**os.environ, **loopback_environment(domain)},
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert run.returncode == 0, run.stdout + run.stderr

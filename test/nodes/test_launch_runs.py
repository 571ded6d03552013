"""What `ros2 launch` starts and how that ends, with scripts in the place of nodes; needs launch_ros."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from adahi_ros.core import signals
from adahi_ros.core.assets import asset
from test.nodes.launches import FILES, FIRST, JOBS, NODES, file_of

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
WITH_MIDDLEWARE = """
import os
import launch_ros.actions  # its rclpy refuses a middleware that is not installed
os.environ["RMW_IMPLEMENTATION"] = "{}"
"""
VARIABLES = (
    "FASTRTPS_DEFAULT_PROFILES_FILE",
    "FASTDDS_DEFAULT_PROFILES_FILE",
    "CYCLONEDDS_URI",
    "ROS_STATIC_PEERS",
    "ROS_AUTOMATIC_DISCOVERY_RANGE",
    "RMW_IMPLEMENTATION",
    "ZENOH_CONFIG_OVERRIDE",
)


@pytest.fixture
def stand_ins(tmp_path: Path) -> dict[str, str]:
    """An environment in which the package's nodes are scripts that print theirs and end."""
    prefix = tmp_path / "prefix"
    (prefix / "share/ament_index/resource_index/packages").mkdir(parents=True)
    for package in ("adahi_ros", "adahi_lab"):
        (prefix / "share/ament_index/resource_index/packages" / package).touch()
        (prefix / "share" / package).mkdir()
        (prefix / "lib" / package).mkdir(parents=True)
    (prefix / "share/adahi_ros/config").symlink_to(asset("config"))
    for job, name in NODES.items():
        script = prefix / "lib" / ("adahi_lab" if job == "simulation" else "adahi_ros") / name
        script.write_text("#!/bin/sh\nenv\n")
        script.chmod(0o755)
    present = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {**present, "AMENT_PREFIX_PATH": f"{prefix}:{os.environ.get('AMENT_PREFIX_PATH', '')}"}


def launched(
    job: str, environment: dict[str, str], *arguments: str, script: str = LAUNCH
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, str(file_of(job)), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def printed(output: str) -> dict[str, str]:
    """Return the variables that a process of the launch printed."""
    lines = (line.split("] ", 1)[-1] for line in output.splitlines() if "=" in line)
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("job", ["verifier", "simulation"])
def test_a_node_has_the_environment_of_dds_and_peers(job: str, stand_ins: dict[str, str]) -> None:
    run = launched(job, stand_ins, "dds:=wireless", "peers:=10.0.0.2;10.0.0.3")
    variables = printed(run.stdout)
    assert Path(variables["FASTRTPS_DEFAULT_PROFILES_FILE"]).samefile(
        asset("config/dds/fastdds_wireless.xml")
    )
    assert Path(variables["FASTDDS_DEFAULT_PROFILES_FILE"]).samefile(
        asset("config/dds/fastdds_3_wireless.xml")
    )
    cyclone = Path(variables["CYCLONEDDS_URI"].removeprefix("file://"))
    assert cyclone.samefile(asset("config/dds/cyclonedds_wireless.xml"))
    assert variables["ROS_STATIC_PEERS"] == "10.0.0.2;10.0.0.3"
    assert variables["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "SUBNET"


def test_the_draft_has_the_environment_of_dds_too(stand_ins: dict[str, str]) -> None:
    run = launched("draft", stand_ins, "dds:=wireless", f"params_file:={FILES['params_file']}")
    assert printed(run.stdout)["CYCLONEDDS_URI"].startswith("file:///")


def test_by_default_the_environment_is_left_alone(stand_ins: dict[str, str]) -> None:
    given = {**stand_ins, "FASTRTPS_DEFAULT_PROFILES_FILE": "/mine.xml"}
    variables = printed(launched("verifier", given).stdout)
    assert {name: variables[name] for name in VARIABLES if name in variables} == {
        "FASTRTPS_DEFAULT_PROFILES_FILE": "/mine.xml"
    }


def test_what_is_launched_beside_a_node_keeps_its_environment(stand_ins: dict[str, str]) -> None:
    include = "LaunchDescription([include])"
    beside = "LaunchDescription([include, ExecuteProcess(cmd=['env'], output='screen')])"
    script = LAUNCH.replace(include, beside).replace("import Include", "import ExecuteProcess, Include")
    run = launched("verifier", stand_ins, "dds:=wireless", script=script)
    assert run.stdout.count("CYCLONEDDS_URI=") == 1


def test_a_profile_of_ones_own(stand_ins: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "mine.xml"
    file.touch()
    variables = printed(launched("verifier", stand_ins, f"dds:={file}").stdout)
    assert variables["FASTRTPS_DEFAULT_PROFILES_FILE"] == str(file)
    assert variables["CYCLONEDDS_URI"] == file.as_uri()
    assert "ROS_STATIC_PEERS" not in variables


def test_a_profile_is_only_for_the_middleware_that_runs(stand_ins: dict[str, str]) -> None:
    script = WITH_MIDDLEWARE.format("rmw_cyclonedds_cpp") + LAUNCH
    variables = printed(launched("verifier", stand_ins, "dds:=wireless", script=script).stdout)
    assert "CYCLONEDDS_URI" in variables
    assert "FASTRTPS_DEFAULT_PROFILES_FILE" not in variables


def test_zenoh_has_its_settings_at_the_router(stand_ins: dict[str, str], tmp_path: Path) -> None:
    script = WITH_MIDDLEWARE.format("rmw_zenoh_cpp") + LAUNCH
    run = launched("verifier", stand_ins, "dds:=wireless", "peers:=10.0.0.2", script=script)
    assert "dds, peers: no effect on nodes with rmw_zenoh_cpp" in run.stdout
    assert not {"CYCLONEDDS_URI", "ROS_STATIC_PEERS"} & printed(run.stdout).keys()
    ros2 = tmp_path / "bin" / "ros2"
    ros2.parent.mkdir()
    ros2.write_text('#!/bin/sh\necho "$@: $ZENOH_CONFIG_OVERRIDE"\n')
    ros2.chmod(0o755)
    given = {**stand_ins, "PATH": f"{ros2.parent}:{stand_ins['PATH']}"}
    router = launched("zenoh_router", given, "peers:=10.0.0.2")
    assert "run rmw_zenoh_cpp rmw_zenohd: transport/link" in router.stdout
    assert 'connect/endpoints=["tcp/10.0.0.2:7447"]' in router.stdout


def test_an_unknown_dds_is_named_with_what_is_allowed(stand_ins: dict[str, str]) -> None:
    run = launched("verifier", stand_ins, "dds:=wifi")
    assert run.returncode == 1
    assert "dds: 'wifi'; allowed are default, wireless, and the path of an XML file" in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


@pytest.mark.parametrize(
    ("job", "argument"),
    [
        ("draft", "params_file"),
        ("robot", "params_file"),
        ("verifier", "params_file"),
        ("all", "params_file"),
        ("all", "verifier_params_file"),
        ("robot", "runner_params_file"),
    ],
)
def test_nothing_starts_without_the_parameter_file_that_was_named(
    job: str, argument: str, stand_ins: dict[str, str], tmp_path: Path
) -> None:
    missing, started = tmp_path / "nope.yaml", tmp_path / "started"
    for node in (tmp_path / "prefix/lib/adahi_ros").iterdir():
        node.write_text(f"#!/bin/sh\ntouch {started}\n")
    given = {"params_file": FILES["params_file"]} if argument == "runner_params_file" else {}
    arguments = [f"{name}:={file}" for name, file in {**given, argument: missing}.items()]
    run = launched(job, stand_ins, *arguments)
    assert run.returncode == 1
    assert f"{argument}: there is no file {missing}" in run.stdout
    assert not started.exists()
    assert "Traceback" not in run.stdout + run.stderr


def test_a_misspelt_task_is_named(stand_ins: dict[str, str]) -> None:
    run = launched("all", stand_ins, "task:=kichen")
    assert run.returncode == 1
    assert "task: 'kichen', nothing is shipped for it: config/kichen.yaml: not found" in run.stdout


def test_a_robot_is_not_started_on_the_parameters_of_another(stand_ins: dict[str, str]) -> None:
    run = launched("robot", stand_ins, "task:=ball")
    assert run.returncode == 1
    assert "missing required argument 'params_file'" in run.stdout
    assert "process started" not in run.stdout


@pytest.mark.parametrize(("job", "there"), [("verifier", True), ("simulation", False)])
def test_the_verifier_alone_runs_at_the_servers_end(job: str, there: bool, stand_ins: dict[str, str]) -> None:
    run = launched(job, {**stand_ins, "ADAHI_SERVER_PREFIX": "env WHERE=server"})
    assert (printed(run.stdout).get("WHERE") == "server") is there


@pytest.mark.parametrize("job", sorted(NODES))
def test_a_node_knows_the_launch_that_it_ends_with(job: str, stand_ins: dict[str, str]) -> None:
    instead(stand_ins, NODES[job], "echo PARENT=$PPID", "env")
    variables = printed(launched(job, stand_ins, f"params_file:={FILES['params_file']}").stdout)
    assert variables[signals.LAUNCH] == variables["PARENT"]


def instead(stand_ins: dict[str, str], name: str, *lines: str) -> None:
    """Let a stand-in do something else."""
    prefix = Path(stand_ins["AMENT_PREFIX_PATH"].split(os.pathsep)[0])
    (script,) = prefix.glob(f"lib/*/{name}")
    script.write_text("\n".join(["#!/bin/sh", *lines, ""]))


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(("death", "code"), [("exit 1", 1), ("kill -9 $$", -9)])
def test_a_launch_whose_node_dies_ends_too_and_not_with_0(
    job: str, death: str, code: int, stand_ins: dict[str, str]
) -> None:
    for name in NODES.values():
        instead(stand_ins, name, death if name == FIRST[job] else "exec sleep 60")
    run = launched(job, stand_ins, *(f"{name}:={file}" for name, file in FILES.items()))
    assert run.returncode == 1
    assert f"{FIRST[job]}-1 has died, exit code {code}" in run.stdout


@pytest.mark.parametrize("job", ["draft", "verifier"])
@pytest.mark.parametrize("respawn", [False, True])
def test_a_launch_that_is_interrupted_ends_with_0(
    job: str, respawn: bool, stand_ins: dict[str, str], tmp_path: Path
) -> None:
    """With `use_respawn`, it outlives a node that died once."""
    died = tmp_path / "died"
    instead(
        stand_ins,
        NODES[job],
        *([f"[ -e {died} ] || {{ touch {died}; kill -9 $$; }}"] if respawn else []),
        "echo here it is",
        "exec sleep 60",
    )
    arguments = [f"{name}:={file}" for name, file in FILES.items()]
    command = [sys.executable, "-c", LAUNCH, str(file_of(job)), *arguments]
    with subprocess.Popen(
        [*command, f"use_respawn:={respawn}"],
        env=stand_ins,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            output = next(line for line in process.stdout if "here it is" in line)
            os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
            output += process.communicate(timeout=60)[0]
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, output
    assert died.exists() is respawn


def test_all_runs_to_the_end_of_its_episodes(sourced_workspace: None) -> None:
    from adahi_lab.nodes.domain import exclusive_domain, loopback_environment

    arguments = [str(file_of("all")), "lockstep:=true", "episodes:=2"]
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

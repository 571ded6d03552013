"""Rooms import one way, and the robot's side stays light (docs/architecture.md)."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import adahi_ros

PACKAGE = Path(adahi_ros.__file__).parent
ANYONE = {
    "assets",
    "files",
    "health",
    "kinematics",
    "parallel",
    "parameter_sections",
    "randomness",
    "registry",
    "signals",
    "texts",
    "trajectories",
    "yaml_files",
}
ALGORITHM = {
    "networks",
    "policy",
    "vision",
    "contract",
    "safety",
    "acceptance",
    "gates",
    "wire",
    "robot",
    "server",
    "fleet",
    "targets",
    "tasks",
    "wireless.link",
}
MAY_IMPORT = {
    "networks": set(),
    "policy": {"networks"},
    "policy.vqbet": {"networks", "policy"},
    "policy.flow": {"networks", "policy"},
    "policy.corrector": {"networks", "policy"},
    "policy.lerobot": {"networks", "policy", "policy.vqbet"},
    "vision": {"networks", "policy.lerobot"},
    "targets": {"networks", "policy", "vision"},
    "contract": {"vision"},
    "safety": {"contract"},
    "acceptance": {"networks", "policy"},
    "wire": {"policy", "acceptance"},
    "gates": {"networks", "policy"},
    "robot": {"policy", "vision", "contract", "acceptance", "wire", "gates"},
    "server": {"policy", "vision", "wire", "acceptance"},
    "fleet": {"networks", "policy", "acceptance", "wire", "server", "targets"},
    "tasks": {"vision", "contract"},
    "wireless.link": set(),
    "security": set(),
    "evaluation": ALGORITHM,
    "tuning": ALGORITHM | {"evaluation"},
    "bags": ALGORITHM | {"evaluation"},
    "reporting": ALGORITHM | {"evaluation", "bags"},
    "nodes.common": ALGORITHM,
    "nodes.robot": ALGORITHM | {"nodes.common"},
    "nodes.server": ALGORITHM | {"nodes.common"},
    "nodes.simulation": ALGORITHM | {"nodes.common"},
    "nodes.monitoring": ALGORITHM | {"nodes.common", "bags", "reporting"},
    "nodes.launching": ALGORITHM | {"nodes.common"},
    "wireless.peers": ALGORITHM | {"evaluation"},
    "nodes.measuring": ALGORITHM
    | {"nodes.common", "nodes.robot", "nodes.simulation", "nodes.launching", "wireless.peers"},
    "wireless": ALGORITHM | {"evaluation", "nodes"},
}
ROS = {
    "action_msgs",
    "adahi_msgs",
    "builtin_interfaces",
    "control_msgs",
    "diagnostic_msgs",
    "geometry_msgs",
    "launch",
    "launch_ros",
    "lifecycle_msgs",
    "rcl_interfaces",
    "rclpy",
    "rosgraph_msgs",
    "sensor_msgs",
    "std_msgs",
    "std_srvs",
    "trajectory_msgs",
    "visualization_msgs",
}

NOT_INSTALLED = {"benchmarks", "test", "tools"}


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names.add(node.module or "")
    return names


def test_every_folder_is_a_room_that_is_known() -> None:
    folders = {".".join(path.parent.relative_to(PACKAGE).parts) for path in PACKAGE.rglob("__init__.py")}
    assert folders == MAY_IMPORT.keys() | {"", "cli", "nodes"}


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_a_room_imports_only_what_it_may(room: str) -> None:
    allowed = MAY_IMPORT[room] | {room}
    for file in sorted((PACKAGE / room.replace(".", "/")).glob("*.py")):
        for name in imported(file):
            parts = name.split(".")
            if parts[0] == "adahi_ros" and len(parts) > 1 and parts[1] not in ANYONE:
                inner = name.removeprefix("adahi_ros.")
                assert any(f"{inner}.".startswith(f"{each}.") for each in allowed), f"{file.name}: {name}"
            if not room.startswith("nodes."):
                assert parts[0] not in ROS, f"{file.name} imports {name}"


def test_only_the_verb_that_runs_nodes_imports_them() -> None:
    files = sorted((PACKAGE / "cli").glob("*.py"))
    importers = [
        file.name
        for file in files
        if any(name.startswith("adahi_ros.nodes") or name.split(".")[0] in ROS for name in imported(file))
    ]
    assert importers == ["fleet_up.py", "over_dds.py", "top.py"]


def test_beside_the_rooms_is_only_what_anyone_may_import_and_the_client() -> None:
    assert {file.stem for file in PACKAGE.glob("*.py")} == ANYONE | {
        "__init__",
        "__main__",
        "client",
        "start",
    }
    importers = [str(file) for file in PACKAGE.rglob("*.py") if "adahi_ros.client" in imported(file)]
    assert not importers


def test_what_anyone_may_import_imports_no_room() -> None:
    for name in ANYONE:
        ours = [each for each in imported(PACKAGE / f"{name}.py") if each.startswith("adahi_ros.")]
        assert {each.split(".")[1] for each in ours} <= ANYONE, name


def test_the_robots_node_needs_no_more_than_robot_txt() -> None:
    program = (
        "import sys, adahi_ros.nodes.robot.draft_policy_node, adahi_ros.policies.vqbet.vqbet_onnx;"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    heavy = {"torch", "scipy", "matplotlib", "rich", "typer", "gymnasium", "onnx", "vector_quantize_pytorch"}
    assert heavy.isdisjoint(loaded.split())


@pytest.mark.parametrize(
    ("node", "other"),
    [("robot.draft_policy_node", "server"), ("server.target_verifier_node", "robot")],
)
def test_neither_end_loads_the_other(node: str, other: str) -> None:
    program = f"import sys, adahi_ros.nodes.{node}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    strange = [name for name in loaded if f"{name}.".startswith(f"adahi_ros.{other}.")]
    assert not strange


def test_nothing_that_is_installed_needs_what_is_not() -> None:
    root = PACKAGE.parent
    for file in (root / "setup.py", *sorted(PACKAGE.rglob("*.py")), *sorted((root / "launch").glob("*.py"))):
        tree = ast.parse(file.read_text())
        said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
        paths = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
        ]
        for name in (*paths, *(each.replace(".", "/") for each in imported(file))):
            assert NOT_INSTALLED.isdisjoint(name.split("/")), f"{file.name} needs {name}"

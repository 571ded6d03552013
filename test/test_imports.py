"""Rooms import one way, and the robot's side stays light (docs/developers/architecture.md)."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import adahi_lab
import adahi_ros

PACKAGE = Path(adahi_ros.__file__).parent
LAB = Path(adahi_lab.__file__).parent
POLICIES = {
    "policies",
    "policies.networks",
    "policies.corrector",
    "policies.flow",
    "policies.intent",
    "policies.vqbet",
}
MAY_IMPORT = {
    "core": set(),
    "contract": {"contract.sinks", "vision"},
    "contract.sinks": {"contract"},
    "vision": {"policies.networks"},
    "acceptance": set(),
    "protocol": {"acceptance"},
    "gates": set(),
    "policies": POLICIES | {"policies.remote"},
    "policies.networks": set(),
    "policies.corrector": {"policies", "policies.networks"},
    "policies.flow": {"policies", "policies.networks"},
    "policies.intent": {"policies", "policies.networks", "policies.corrector"},
    "policies.vqbet": {"policies", "policies.networks"},
    "policies.remote": {"policies", "policies.networks"},
    "proposers": {"acceptance", "policies", "policies.corrector", "policies.intent"},
    "robot": {"acceptance", "contract", "gates", "policies", "proposers", "protocol", "safety", "vision"},
    "safety": {"contract"},
    "server": {"acceptance", "policies", "protocol", "vision"},
    "doors": {"policies", "policies.remote", "protocol", "server"},
    "server.ray": {"acceptance", "policies", "policies.intent", "policies.remote", "protocol", "server"},
    "bags": {"contract", "protocol", "vision"},
    "security": set(),
}
"""Rooms that know no ROS, and the rooms that each may import beside itself and core."""
NODES_MAY_IMPORT = {
    "nodes": set(),
    "nodes.common": {"contract", "contract.sinks", "gates", "policies", "protocol", "vision"},
    "nodes.robot": {
        "contract",
        "contract.sinks",
        "gates",
        "policies",
        "proposers",
        "protocol",
        "robot",
        "safety",
        "vision",
    },
    "nodes.server": {
        "acceptance",
        "doors",
        "policies",
        "policies.intent",
        "protocol",
        "server",
        "server.ray",
    },
    "nodes.monitoring": {"bags", "contract", "protocol", "robot", "safety"},
    "nodes.launching": {"policies", "server.ray"},
}
"""Rooms that know ROS; each may import nodes.common as well."""
ROS = {
    "action_msgs",
    "adahi_msgs",
    "builtin_interfaces",
    "control_msgs",
    "controller_manager_msgs",
    "diagnostic_msgs",
    "geometry_msgs",
    "launch",
    "launch_ros",
    "lifecycle_msgs",
    "moveit_msgs",
    "rcl_interfaces",
    "rclpy",
    "rosgraph_msgs",
    "sensor_msgs",
    "std_msgs",
    "std_srvs",
    "trajectory_msgs",
    "visualization_msgs",
}

PLACE = re.compile(r"adahi_ros(\.\w+)+:\w+")  # in a registry, which imports it when it is looked up
NOT_INSTALLED = {"benchmarks", "test", "tools"}


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names.add(node.module or "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and PLACE.fullmatch(node.value):
            names.add(node.value.partition(":")[0])
    return names


def of_nodes(file: Path) -> bool:
    """Return whether a file of a paper has nodes, or is the command of its table, which may start them."""
    return file.parent.parent == LAB / "papers" and file.name.endswith(("table.py", "_nodes.py"))


def room_of(file: Path) -> str:
    return ".".join(file.parent.relative_to(PACKAGE).parts)


def rooms_imported(file: Path) -> set[str]:
    """Return the rooms of this package that a file imports."""
    rooms = set()
    for name in imported(file):
        parts = name.split(".")
        if parts[0] == "adahi_ros" and len(parts) > 1:
            folder = PACKAGE.joinpath(*parts[1:])
            rooms.add(".".join(parts[1:] if folder.is_dir() else parts[1:-1]))
    return rooms


def test_no_modules_import_each_other_in_a_circle() -> None:
    files = {
        ".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"): file
        for package in (PACKAGE, LAB)
        for file in package.rglob("*.py")
    }
    graph: dict[str, set[str]] = {}
    for name, file in files.items():
        graph[name] = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                parts = {f"{node.module}.{each.name}" for each in node.names} & files.keys()
                graph[name] |= parts or {node.module or ""}
    TopologicalSorter(graph).prepare()  # raises a CycleError that names the modules


def test_every_folder_is_a_room_that_is_known() -> None:
    folders = {room_of(path) for path in PACKAGE.rglob("__init__.py")}
    free = {room for room in folders if room in ("", "cli")}
    assert folders - free == MAY_IMPORT.keys() | NODES_MAY_IMPORT.keys()


@pytest.mark.parametrize("room", sorted(MAY_IMPORT | NODES_MAY_IMPORT))
def test_a_room_imports_only_what_it_may(room: str) -> None:
    allowed = (MAY_IMPORT | NODES_MAY_IMPORT)[room] | {room, "core"}
    if room in NODES_MAY_IMPORT:
        allowed |= {"nodes.common"}
    for file in sorted((PACKAGE / room.replace(".", "/")).glob("*.py")):
        assert rooms_imported(file) <= allowed, file.name


def test_ros_is_imported_in_rooms_of_nodes_alone() -> None:
    files = [file for file in PACKAGE.rglob("*.py") if room_of(file) not in NODES_MAY_IMPORT]
    files += [file for file in LAB.rglob("*.py") if file.parent != LAB / "nodes" and not of_nodes(file)]
    with_ros = {file.name for file in files if any(name.split(".")[0] in ROS for name in imported(file))}
    assert with_ros == {"client.py"}  # the library for a user's own program


def test_timers_of_nodes_are_made_in_one_module() -> None:
    """A timer made directly still calls after it was destroyed, and a clock that is set back delays it."""
    made = re.compile(r"\.create_timer\(|\bTimer\(")
    files = [*PACKAGE.rglob("*.py"), *LAB.rglob("*.py")]
    direct = [file for file in files if made.search(file.read_text())]
    assert direct == [PACKAGE / "nodes/common/timers.py"], "use steady_timer of nodes/common/timers.py"


def test_nothing_that_a_robot_runs_names_the_lab() -> None:
    """Neither by an import nor by a string; the launch file that moved says where it is now."""
    root = PACKAGE.parent
    files = [path for name in ("launch", "config") for path in (root / name).rglob("*") if path.is_file()]
    files += [*PACKAGE.rglob("*.py"), root / "package.xml", root / "setup.py"]
    naming = {str(file.relative_to(root)) for file in files if "adahi_lab" in file.read_text()}
    assert naming == {"launch/all.launch.py"}


def test_beside_the_rooms_are_only_the_entry_points_and_the_client() -> None:
    assert {file.stem for file in PACKAGE.glob("*.py")} == {"__init__", "__main__", "client", "start"}
    importers = [str(file) for file in PACKAGE.rglob("*.py") if "adahi_ros.client" in imported(file)]
    assert not importers


def test_the_robots_node_needs_no_more_than_robot_txt() -> None:
    program = (
        "import sys, adahi_ros.nodes.robot.draft_policy_node, adahi_ros.policies.vqbet.vqbet_checkpoint;"
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
    packages = (root, PACKAGE), (root / "adahi_lab", LAB)
    installed = [
        file
        for folder, package in packages
        for file in (folder / "setup.py", *package.rglob("*.py"), *(folder / "launch").glob("*.py"))
    ]
    for file in sorted(installed):
        tree = ast.parse(file.read_text())
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
        paths = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        ]
        for name in (*paths, *(each.split(".")[0] for each in imported(file))):
            assert NOT_INSTALLED.isdisjoint(name.split("/")), f"{file.name} needs {name}"

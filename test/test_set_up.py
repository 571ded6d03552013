"""The set-up makes what a target needs: the demo little, the tests everything."""

from __future__ import annotations

import importlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DEMO = ["make_venv", "install_for_demo", "adahi_msgs", "install_packages"]


@pytest.fixture
def set_up(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("set_up_venv")


def test_the_demo_needs_the_first_stages_alone(set_up: Any) -> None:
    assert [stage.name for stage in set_up.stages(set_up.Ros(), set_up.DEMO)] == DEMO


def test_lerobots_environment_depends_on_its_requirements_alone(
    set_up: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = set_up.stages(set_up.Ros(), set_up.LEROBOT)
    assert [each.name for each in stages] == [
        "make_venv",
        "install_for_lerobot",
        "adahi_msgs",
        "install_packages",
    ]
    monkeypatch.setattr(set_up, "FOR_LEROBOT", set_up.FOR_DEMO)
    others = set_up.stages(set_up.Ros(), set_up.LEROBOT)
    changed = [a.made_from != b.made_from for a, b in zip(stages, others, strict=True)]
    assert changed == [False, True, False, False]


@pytest.mark.parametrize(
    ("present", "built"),
    [
        ("std_msgs", ["control_msgs", "controller_manager_msgs", "moveit_msgs"]),
        ("control_msgs", ["controller_manager_msgs", "moveit_msgs"]),
    ],
)
def test_messages_of_others_are_built_where_ros_lacks_them(
    set_up: Any, tmp_path: Path, present: str, built: list[str]
) -> None:
    packages = tmp_path / "share" / "ament_index" / "resource_index" / "packages"
    packages.mkdir(parents=True)
    (packages / present).touch()
    ros = set_up.Ros("jazzy", {"AMENT_PREFIX_PATH": [str(tmp_path)]})
    stages = [stage.name for stage in set_up.stages(ros)]
    assert stages == [*DEMO, "install_for_all", *built]


def test_colcon_does_not_install_the_messages_of_the_tests(set_up: Any) -> None:
    for package in set_up.FOR_TESTS:
        assert (package / "COLCON_IGNORE").is_file()


@pytest.mark.parametrize(
    ("arguments", "of", "said"),
    [(["--help"], "base", "--help: must be nothing, demo or lerobot"), ([], "venv", "run tools/set_up")],
)
def test_a_wrong_call_deletes_no_environment(
    set_up: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    of: str,
    said: str,
) -> None:
    monkeypatch.setattr("sys.argv", ["set_up_venv.py", *arguments])
    monkeypatch.setattr("sys.prefix", str(set_up.VENV) if of == "venv" else "/usr")
    monkeypatch.setattr(set_up, "set_up", lambda kind: pytest.fail("it sets up"))
    assert set_up.main() == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "sourced", "chosen"),
    [
        ((), "", "python3.12"),
        ((), "/opt/ros/jazzy", "python3"),
        (("lerobot",), "/opt/ros/humble", "python3.12"),
    ],
)
def test_python_3_12_is_taken_unless_ros_is_sourced(
    tmp_path: Path, kind: tuple[str, ...], sourced: str, chosen: str
) -> None:
    done = run_script(tmp_path, {"python3": "3.11", "python3.12": "3.12"}, kind, sourced)
    assert (done.returncode, done.stdout) == (0, f"{chosen}\n")


def test_lerobot_is_not_set_up_with_python_3_11(tmp_path: Path) -> None:
    done = run_script(tmp_path, {"python3.12": "3.11"}, ("lerobot",))
    assert done.returncode == 1
    assert "error: Python 3.12 to 3.13 is needed; python3.12 is 3.11. Install one" in done.stderr


def run_script(
    folder: Path, pythons: dict[str, str], arguments: tuple[str, ...], sourced: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the script with a stand-in for each Python: it says its version, then its name for the set-up."""
    for name, version in pythons.items():
        python = folder / name
        answers = f"*version_info*) echo {version};; *executable*) echo $0;; *) echo {name};;"
        python.write_text(f'#!/bin/sh\ncase "$3" in {answers} esac\n')
        python.chmod(0o755)
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools/set_up", folder / "tools")
    environment = {"PATH": f"{folder}:/usr/bin:/bin", **({"AMENT_PREFIX_PATH": sourced} if sourced else {})}
    return subprocess.run(
        ["sh", "tools/set_up", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

"""The set-up makes what a target needs: the demo little, the tests everything."""

from __future__ import annotations

import importlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DEMO = ["make_venv", "install_for_demo", "build_messages", "install_packages"]


@pytest.fixture
def set_up(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("set_up_venv")


def test_the_demo_needs_the_first_stages_alone(set_up: Any) -> None:
    assert [stage.work.__name__ for stage in set_up.stages(set_up.Ros(), demo=True)] == DEMO


@pytest.mark.parametrize(("present", "built"), [("std_msgs", ["build_control_msgs"]), ("control_msgs", [])])
def test_control_msgs_is_built_where_ros_lacks_it(
    set_up: Any, tmp_path: Path, present: str, built: list[str]
) -> None:
    packages = tmp_path / "share" / "ament_index" / "resource_index" / "packages"
    packages.mkdir(parents=True)
    (packages / present).touch()
    ros = set_up.Ros("jazzy", {"AMENT_PREFIX_PATH": [str(tmp_path)]})
    stages = [stage.work.__name__ for stage in set_up.stages(ros, demo=False)]
    assert stages == [*DEMO, "install_for_all", *built]


def test_colcon_does_not_install_the_control_msgs_of_the_tests(set_up: Any) -> None:
    assert (set_up.CONTROL_MSGS / "COLCON_IGNORE").is_file()


@pytest.mark.parametrize(
    ("arguments", "of", "said"),
    [(["--help"], "base", "--help: must be nothing or demo"), ([], "venv", "run tools/set_up")],
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
    monkeypatch.setattr(set_up, "set_up", lambda demo: pytest.fail("it sets up"))
    assert set_up.main() == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("sourced", "chosen"), [("", "python3.12"), ("/opt/ros/jazzy", "python3")])
def test_python_3_12_is_taken_unless_ros_is_sourced(tmp_path: Path, sourced: str, chosen: str) -> None:
    """A stand-in for each Python says its version, then its name instead of running the set-up."""
    for name, version in (("python3", "3.11"), ("python3.12", "3.12")):
        python = tmp_path / name
        answers = f"*version_info*) echo {version};; *executable*) echo $0;; *) echo {name};;"
        python.write_text(f'#!/bin/sh\ncase "$3" in {answers} esac\n')
        python.chmod(0o755)
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/set_up", tmp_path / "tools")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", **({"AMENT_PREFIX_PATH": sourced} if sourced else {})}
    done = subprocess.run(
        ["sh", "tools/set_up"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{chosen}\n"

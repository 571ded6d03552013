"""What is installed by colcon or pip: small, complete for the demo and a robot, clear about the rest."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import setuptools
import yaml

from test.core.test_assets import module_at

ROOT = Path(__file__).resolve().parents[1]
MOST_BYTES = 5e6
TASKS = sorted(file.stem for file in (ROOT / "adahi_lab/config/best").glob("*.yaml"))


def installed(folder: Path, prefix: Path) -> Path:
    """Copy the files that a package's setup.py installs to where an installation has them."""
    given: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(setuptools, "setup", lambda **arguments: given.update(arguments))
        patched.chdir(folder)
        runpy.run_path("setup.py")
    modules = prefix / "lib" / "python3.12" / "site-packages"
    data = given.get("package_data", {}).get(given["name"], ())
    for package in given["packages"]:
        inside = package.replace(".", "/")
        patterns = ["*.py", *(pattern.rpartition("/")[2] for pattern in data)]
        for file in (file for pattern in patterns for file in (folder / inside).glob(pattern)):
            (modules / inside).mkdir(parents=True, exist_ok=True)
            shutil.copy(file, modules / inside)
    for inside, files in given["data_files"]:
        (prefix / inside).mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(folder / file, prefix / inside)
    metadata = modules / f"{given['name']}-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {given['name']}\nVersion: 0\n")
    groups = (f"[{group}]\n" + "\n".join(lines) + "\n" for group, lines in given["entry_points"].items())
    (metadata / "entry_points.txt").write_text("\n".join(groups))
    return prefix


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what a robot has: adahi_ros alone."""
    prefix = installed(ROOT, tmp_path_factory.mktemp("robot"))
    hidden = prefix / "lib/python3.12/site-packages/adahi_lab-0.dist-info"  # hides that of the test's Python
    hidden.mkdir()
    (hidden / "METADATA").write_text("Metadata-Version: 2.1\nName: adahi_lab\nVersion: 0\n")
    return prefix


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both packages, without the checkpoints."""
    return installed(ROOT / "adahi_lab", installed(ROOT, tmp_path_factory.mktemp("installed")))


def adahi(prefix: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command, with nothing of the checkout."""
    modules = prefix / "lib" / "python3.12" / "site-packages"
    return subprocess.run(
        [sys.executable, "-m", "adahi_ros", *words],
        env={**os.environ, "PYTHONPATH": str(modules), "COLUMNS": "200", **variables},
        cwd=prefix,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_what_a_robot_has_is_below_5_megabytes(robot: Path) -> None:
    assert sum(file.stat().st_size for file in robot.rglob("*") if file.is_file()) < MOST_BYTES


def test_a_robot_has_the_verbs_for_robots_alone(robot: Path) -> None:
    listed = adahi(robot, "--help")
    assert listed.returncode == 0, listed.stderr
    verbs = set(re.findall(r"^│ (\w+)", listed.stdout, re.MULTILINE))
    assert verbs == {"watch", "doctor", "enable", "contract", "lerobot", "record", "bag", "serve", "keys"}
    other = adahi(robot, "report", "bag")
    assert other.stderr.startswith("adahi: report: no such command; other packages")
    checked = adahi(robot, "contract", "check", "so101")
    assert checked.returncode == 0, checked.stderr


def test_both_packages_and_the_checkpoints_evaluate_a_policy(prefix: Path, tmp_path: Path) -> None:
    share = tmp_path / "share/adahi_checkpoints"
    share.mkdir(parents=True)
    (share / "checkpoints").symlink_to(ROOT / "checkpoints")
    words = ("evaluate", "ball", "--episodes", "1", "--methods", "best", "--workers", "1")
    ended = adahi(prefix, *words, AMENT_PREFIX_PATH=str(tmp_path))
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("task", TASKS)
def test_a_task_without_its_checkpoints_names_the_command(task: str, prefix: Path) -> None:
    assets = module_at(prefix / "lib" / task / "site-packages" / "adahi_ros" / "assets.py")
    parameters = yaml.safe_load((prefix / "share/adahi_lab/config/best" / f"{task}.yaml").read_text())
    for node in parameters.values():
        with pytest.raises(FileNotFoundError, match=r"adahi_checkpoints. Build it.*colcon build"):
            assets.named(node["ros__parameters"]["checkpoint"], assets.CHECKPOINTS)


def test_the_command_says_it_in_one_line(prefix: Path) -> None:
    ended = adahi(prefix, "evaluate", "kitchen", "--episodes", "1")
    assert ended.returncode == 2
    assert ended.stderr.startswith("adahi: --checkpoints: none, must be given for kitchen")
    assert "colcon build --base-paths SOURCE/checkpoints" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_the_package_of_checkpoints_has_all_of_them() -> None:
    """It installs its whole folder, without the files that build it."""
    text = (ROOT / "checkpoints/CMakeLists.txt").read_text()
    assert "DIRECTORY .\n" in text
    assert "share/${PROJECT_NAME}/checkpoints" in text
    ours = {path.name for path in (ROOT / "checkpoints").iterdir() if path.is_file()}
    assert ours == {"CMakeLists.txt", "package.xml"}

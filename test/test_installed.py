"""What is installed by colcon or pip: small, complete for the demo and a robot, clear about the rest."""

from __future__ import annotations

import os
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
MOST_BYTES = 25e6
OTHERS = sorted({file.stem for file in (ROOT / "config/best").glob("*.yaml")} - {"ball"})


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that setup.py installs, where an installation has them."""
    given: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(setuptools, "setup", lambda **arguments: given.update(arguments))
        patched.chdir(ROOT)
        runpy.run_path("setup.py")
    prefix = tmp_path_factory.mktemp("installed")
    modules = prefix / "lib" / "python3.12" / "site-packages"
    for package in given["packages"]:
        folder = package.replace(".", "/")
        patterns = ["*.py", *(pattern.rpartition("/")[2] for pattern in given["package_data"]["adahi_ros"])]
        for file in (file for pattern in patterns for file in (ROOT / folder).glob(pattern)):
            (modules / folder).mkdir(parents=True, exist_ok=True)
            shutil.copy(file, modules / folder)
    for folder, files in given["data_files"]:
        (prefix / folder).mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(ROOT / file, prefix / folder)
    return prefix


def adahi(prefix: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command, with nothing of the checkout."""
    modules = prefix / "lib" / "python3.12" / "site-packages"
    return subprocess.run(
        [sys.executable, "-m", "adahi_ros", *words],
        env={**os.environ, "PYTHONPATH": str(modules), "COLUMNS": "200"},
        cwd=prefix,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_is_below_25_megabytes(prefix: Path) -> None:
    assert sum(file.stat().st_size for file in prefix.rglob("*") if file.is_file()) < MOST_BYTES


def test_the_default_task_is_complete(prefix: Path) -> None:
    """`best` of ball is what the demo, and a robot's first start, run."""
    parameters = yaml.safe_load((prefix / "share/adahi_ros/config/best/ball.yaml").read_text())
    checkpoints = prefix / "share/adahi_ros/checkpoints"
    for node in parameters.values():
        assert (checkpoints / f"{node['ros__parameters']['checkpoint']}.onnx").is_file()
    ended = adahi(prefix, "evaluate", "ball", "--episodes", "1", "--methods", "best", "--workers", "1")
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("task", OTHERS)
def test_a_task_without_its_checkpoints_names_the_command(task: str, prefix: Path) -> None:
    assets = module_at(prefix / "lib" / task / "site-packages" / "adahi_ros" / "assets.py")
    parameters = yaml.safe_load((prefix / "share/adahi_ros/config/best" / f"{task}.yaml").read_text())
    for node in parameters.values():
        with pytest.raises(FileNotFoundError, match=r"package adahi_checkpoints.*colcon build"):
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

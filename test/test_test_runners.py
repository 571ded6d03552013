"""Pytest starts beside the plugins of a sourced ROS 2, and `colcon test` starts pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLUGIN = "def pytest_pycollect_makemodule(path, parent): ...\n"  # as in launch_testing 3.4.3
ENTRY_POINTS = ["launch_testing", "launch_pytest", "launch_ros", "launch_testing_ros_pytest_entrypoint"]


def collects(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    test = "test/test_test_runners.py::test_pytest_starts_beside_the_plugins_of_ros"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *options, test],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_pytest_starts_beside_the_plugins_of_ros(tmp_path: Path) -> None:
    info = tmp_path / "fake_plugin-3.4.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-plugin\nVersion: 3.4.3\n")
    points = "".join(f"{name} = fake_hooks\n" for name in ENTRY_POINTS)
    (info / "entry_points.txt").write_text(f"[pytest11]\n{points}")
    (tmp_path / "fake_hooks.py").write_text(PLUGIN)
    bare = collects(tmp_path, "-o", "addopts=")
    assert "Argument(s) {'path'}" in bare.stdout + bare.stderr
    run = collects(tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr


def test_colcon_test_runs_pytest() -> None:
    identify = pytest.importorskip(
        "colcon_python_setup_py.package_identification.python_setup_py", reason="colcon is not installed"
    )
    from colcon_core.task.python.test import has_test_dependency

    setup = identify.get_setup_information(ROOT / "setup.py", env=dict(os.environ))
    assert has_test_dependency(setup, "pytest")

"""The gate of CONTRIBUTING.md works: its file, its line, its test and its command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
GATE, LINE, TEST = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """The package with the gate's file and line, and the test beside it."""
    package = tmp_path / "adahi_ros"
    package.mkdir()
    for path in (ROOT / "adahi_ros").iterdir():
        if path.name != "gates":
            (package / path.name).symlink_to(path)
    (package / "gates").mkdir()
    for path in (ROOT / "adahi_ros/gates").glob("*.py"):
        (package / "gates" / path.name).write_text(path.read_text())
    registry = package / "gates/registry.py"
    registry.write_text(registry.read_text().replace('        "age": ', f'{LINE}        "age": '))
    (package / "gates/active_age.py").write_text(GATE)
    (tmp_path / "test_active_age.py").write_text(TEST)
    for shipped in ("config", "checkpoints"):
        (tmp_path / shipped).symlink_to(ROOT / shipped)
    return tmp_path


def run(folder: Path, *command: str) -> str:
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, cwd=folder, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_gate_of_the_page_passes_the_test_of_the_page(changed: Path) -> None:
    run(changed, "pytest", "-q", "-p", "no:cacheprovider", "test_active_age.py")
    run(
        changed,
        "ruff",
        "check",
        "--config",
        str(ROOT / "pyproject.toml"),
        "adahi_ros/gates",
        "test_active_age.py",
    )


def test_the_command_of_the_page_evaluates_the_gate(changed: Path) -> None:
    (command,) = re.findall(r"^    \.venv/bin/adahi (.+)$", PAGE, re.MULTILINE)
    compared, quick = "plan:active_age,plan:age,plan:random --rate 0.13", "plan+active_age:slope=2@8"
    words = command.replace(compared, quick).split()
    words[words.index("--episodes") + 1] = "2"
    assert "active_age" in run(changed, "adahi_ros", *words, "--workers", "1")

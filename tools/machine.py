# SPDX-License-Identifier: Apache-2.0
"""Check that this machine has everything for the set-up of .venv."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"


def missing_from_machine(wheels: bool) -> list[str]:
    """Return a line for each thing that the set-up needs and this machine lacks.

    Args:
        wheels: ROS 2 is installed as wheels.
    """
    lines = []
    if wheels and (sys.platform, platform.machine()) != ("linux", "x86_64"):
        lines.append(
            f"ROS 2: its wheels are for Linux on x86_64, this is {sys.platform} on {platform.machine()}. "
            "Install ROS 2 Jazzy and source its setup.bash"
        )
    if not importlib.util.find_spec("ensurepip"):
        lines.append(f"Python's venv module. Debian, Ubuntu: sudo apt install {PYTHON}-venv")
    c_compiler, cxx_compiler = compiler("CC", "cc", "gcc"), compiler("CXX", "c++", "g++")
    c_works = compiles([*c_compiler, "-x", "c"], "#include <stdlib.h>\n")
    cxx_works = compiles([*cxx_compiler, "-x", "c++"], "#include <vector>\n")
    if not (c_works and cxx_works):
        broken = [c_compiler[0]] * (not c_works) + [cxx_compiler[0]] * (not cxx_works)
        lines.append(
            f"a C and C++ compiler ({' and '.join(broken)} cannot compile a line). Debian, Ubuntu: "
            "sudo apt install build-essential; Fedora: sudo dnf install gcc gcc-c++"
        )
    headers = sysconfig.get_path("include")
    if not (Path(headers) / "Python.h").is_file():
        lines.append(
            f"the C headers of {sys.executable} ({headers}/Python.h). Debian, Ubuntu: "
            f"sudo apt install {PYTHON}-dev; Fedora: sudo dnf install {PYTHON}-devel"
        )
    return lines


def compiler(variable: str, *names: str) -> list[str]:
    if os.environ.get(variable):
        return os.environ[variable].split()
    return [next((name for name in names if shutil.which(name)), names[0])]


def compiles(command: Sequence[str], source: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        output = ["-c", "-o", f"{folder}/out.o", "-"]
        try:
            subprocess.run([*command, *output], input=source.encode(), capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return False
    return True

# SPDX-License-Identifier: Apache-2.0
"""Sets the variables of a setup.bash at every start of the environment's Python.

`set_up_venv.py` copies this module into .venv, where a .pth file imports it, and stores beside it the
entries that each path variable needs. So `.venv/bin/adahi` and all of its processes find
ROS 2 and adahi_msgs in a shell without a sourced ROS 2.
"""

from __future__ import annotations

import json
import os
import sys

READ_AT_START = {"LD_LIBRARY_PATH", "PYTHONPATH"}  # read by the loader and by Python only at a start


def extend_environment() -> None:
    """Put missing entries first in each variable; restart where that comes too late."""
    with open(os.path.splitext(__file__)[0] + ".json", encoding="utf-8") as file:
        needed = json.load(file)
    start_again = False
    for name, entries in needed.items():
        present = [entry for entry in os.environ.get(name, "").split(os.pathsep) if entry]
        missing = [entry for entry in entries if entry not in present]
        if missing:
            os.environ[name] = os.pathsep.join(missing + present)
            start_again = start_again or name in READ_AT_START
    if start_again:
        os.execve(sys.executable, sys.orig_argv, os.environ)


extend_environment()

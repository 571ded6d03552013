"""The launch files, for those who test them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import adahi_lab
from adahi_ros.core.assets import asset

JOBS = ("draft", "verifier", "simulation", "all", "robot", "panda")
NODES = {
    "draft": "draft_policy_node",
    "verifier": "target_verifier_node",
    "simulation": "robot_simulator_node",
}
FIRST = {**NODES, "all": NODES["verifier"], "robot": NODES["draft"], "panda": NODES["simulation"]}
LAB = Path(adahi_lab.__file__).parents[1]
FILES = {  # of all.launch.py; the other files take the first
    "params_file": str(asset("config/ball.yaml")),
    "verifier_params_file": str(asset("config/verifier.yaml")),
}


def file_of(job: str) -> Path:
    """Return a launch file; all.launch.py is the lab's, and not the one that names it."""
    return LAB / "launch/all.launch.py" if job == "all" else asset(f"launch/{job}.launch.py")


def description_of(job: str) -> Any:
    from launch.launch_description_sources import get_launch_description_from_python_launch_file

    return get_launch_description_from_python_launch_file(str(file_of(job)))

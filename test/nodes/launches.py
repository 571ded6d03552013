"""The launch files, for those who test them."""

from __future__ import annotations

from typing import Any

from adahi_ros.core.assets import asset

JOBS = ("draft", "verifier", "simulation", "all", "robot", "panda")
NODES = {
    "draft": "draft_policy_node",
    "verifier": "target_verifier_node",
    "simulation": "robot_simulator_node",
}
FIRST = {**NODES, "all": NODES["verifier"], "robot": NODES["draft"], "panda": NODES["simulation"]}
FILES = {
    "params_file": str(asset("config/ball.yaml")),
    "verifier_params_file": str(asset("config/verifier.yaml")),
}


def description_of(job: str) -> Any:
    from launch.launch_description_sources import get_launch_description_from_python_launch_file

    return get_launch_description_from_python_launch_file(str(asset(f"launch/{job}.launch.py")))

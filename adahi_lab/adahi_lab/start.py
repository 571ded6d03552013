# SPDX-License-Identifier: Apache-2.0
"""Entry point of the simulated robot: SIGINT during imports ends it without a traceback."""

from __future__ import annotations

from adahi_ros.start import run_main


def robot_simulator_node() -> None:
    """Run the simulated robot."""
    run_main("adahi_lab.nodes.robot_simulator_node")

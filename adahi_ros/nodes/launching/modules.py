# SPDX-License-Identifier: Apache-2.0
"""The module of each node."""

from __future__ import annotations

MODULES = {
    name: f"adahi_ros.{room}.{name}"
    for room, names in {
        "nodes.robot": ("draft_policy_node", "policy_runner_node"),
        "nodes.server": ("target_verifier_node",),
        "nodes.monitoring": ("bag_recorder_node", "path_markers_node"),
        "lab.nodes": ("robot_simulator_node", "recording_robot_node"),
    }.items()
    for name in names
}
"""From a node's name to its module. The executable has the same name, but `recording_robot_node` has none: it
replaces a robot in soak tests, and activates the draft policy that it finds."""

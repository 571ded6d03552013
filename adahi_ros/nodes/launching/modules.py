# SPDX-License-Identifier: Apache-2.0
"""Where each node is."""

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
"""From a node's name to its module. It is that of its executable, too, but for `recording_robot_node`, which
has none: it stands in for a robot in soaks, and activates whatever draft policy it finds."""

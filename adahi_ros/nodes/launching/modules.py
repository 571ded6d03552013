# SPDX-License-Identifier: Apache-2.0
"""The module of each node."""

from __future__ import annotations

MODULES = {
    name: f"adahi_ros.{room}.{name}"
    for room, names in {
        "nodes.robot": ("draft_policy_node", "policy_runner_node"),
        "nodes.server": ("target_verifier_node",),
        "nodes.monitoring": ("bag_recorder_node", "path_markers_node", "scene_checker_node"),
    }.items()
    for name in names
}
"""From a node's name to its module. The executable has the same name."""

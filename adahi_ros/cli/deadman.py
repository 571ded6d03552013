# SPDX-License-Identifier: Apache-2.0
"""`adahi enable`: the deadman at a terminal."""

from __future__ import annotations

from adahi_ros.cli import options
from adahi_ros.start import become

DEADMAN = "adahi_ros.nodes.robot.deadman"


def enable(namespace: options.Namespace = "") -> None:
    """Press the deadman: the arm may move until Ctrl-C, which stops it. Each start is a fresh press."""
    become(DEADMAN, namespace=namespace)

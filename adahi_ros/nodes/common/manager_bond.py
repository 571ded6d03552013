# SPDX-License-Identifier: Apache-2.0
"""A bond with nav2's lifecycle manager, which detects that a node has died, or is not active any more.

It works like those of nav2's own nodes (nav2_util::LifecycleNode): on the topic `bond`, with the node's name.
It needs bondpy of ROS's bond_core, which nav2 installs. PyPI's bondpy is an unrelated package.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rclpy.duration import Duration
from rclpy.node import Node

TOPIC = "bond"
PARTING_S = 0.1  # for the last message to reach the manager
TIMEOUT_S = 4.0  # nav2's: the bond breaks after this time without a heartbeat of the manager
MISSING = (
    "no bond with a lifecycle manager: bondpy is not installed (apt install ros-$ROS_DISTRO-bondpy); nav2's "
    "manager must have bond_timeout: 0.0"
)


class ManagerBond:
    """Sends a node's heartbeats to a lifecycle manager.

    A thread of bondpy sends heartbeats. The node's executor receives the manager's: if it is blocked for
    `TIMEOUT_S`, the bond breaks, too.

    Args:
        node: that is managed.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._bond: Any = None

    def form(self, period_s: float) -> None:
        """Look for the manager for 10 s; without bondpy, log that there is no bond.

        Args:
            period_s: of the heartbeats.
        """
        try:
            made = import_module("bondpy.bondpy").Bond(self._node, TOPIC, self._node.get_name())
        except ImportError:
            self._node.get_logger().info(MISSING, once=True)
            return
        made.heartbeat_period = period_s
        made.heartbeat_timeout = TIMEOUT_S
        made.start()
        self._bond = made

    def dissolve(self) -> None:
        """End the bond, if there is one, and notify the manager."""
        broken, self._bond = self._bond, None
        if broken is not None:
            broken.break_bond()
            broken.pub.wait_for_all_acked(Duration(seconds=PARTING_S))  # before the publisher is destroyed
            broken.shutdown()
            self._node.destroy_subscription(broken.sub)  # bondpy leaves both in the node's lists
            self._node.destroy_publisher(broken.pub)

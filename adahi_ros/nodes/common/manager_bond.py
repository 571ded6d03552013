# SPDX-License-Identifier: Apache-2.0
"""A bond with nav2's lifecycle manager, which learns by it that a node has died, or is active no more.

As those of nav2's own nodes (nav2_util::LifecycleNode): on the topic `bond`, by the node's name. It is made
by bondpy, of ROS's bond_core, which comes with nav2; PyPI's bondpy is another, for ceiling fans.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rclpy.duration import Duration
from rclpy.node import Node

TOPIC = "bond"
PARTING_S = 0.1  # for the manager to have heard that there is a bond no more
TIMEOUT_S = 4.0  # nav2's: who hears nothing of the manager for so long holds no bond any more
MISSING = (
    "no bond with a lifecycle manager: bondpy is not there (apt install ros-$ROS_DISTRO-bondpy); nav2's "
    "manager must have bond_timeout: 0.0"
)


class ManagerBond:
    """Tells a lifecycle manager that a node lives.

    Heartbeats go out on a thread of bondpy's. The node's executor hears the manager's: where it does nothing
    for `TIMEOUT_S`, the bond breaks, too.

    Args:
        node: that is managed.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._bond: Any = None

    def form(self, period_s: float) -> None:
        """Begin to look for the manager, for 10 s; without bondpy, say that there will be no bond.

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
        """Tell the manager that there is a bond no more, where there was one."""
        broken, self._bond = self._bond, None
        if broken is not None:
            broken.break_bond()
            broken.pub.wait_for_all_acked(Duration(seconds=PARTING_S))  # what is destroyed sends no more
            broken.shutdown()
            self._node.destroy_subscription(broken.sub)  # bondpy leaves both in the node's lists
            self._node.destroy_publisher(broken.pub)

# SPDX-License-Identifier: Apache-2.0
"""A node's health, once a second on /diagnostics."""

from __future__ import annotations

from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from adahi_ros.core.health_level import Health
from adahi_ros.nodes.common.timers import steady_timer

PERIOD_S = 1.0


class DiagnosticsPublisher:
    """Publishes a node's health.

    Args:
        node: publishes.
        hardware_id: of the machine or robot.
        task: of the node; the status has the name `NODE: TASK`, as with diagnostic_updater.
        health: called once a second.
    """

    def __init__(self, node: Node, hardware_id: str, task: str, health: Callable[[], Health]) -> None:
        self._node = node
        self._task = task
        self._hardware_id = hardware_id
        self._health = health
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._timer = steady_timer(node, PERIOD_S, self._publish)

    def destroy(self) -> None:
        """Stop publishing."""
        self._node.destroy_timer(self._timer)
        self._node.destroy_publisher(self._publisher)

    def _publish(self) -> None:
        health = self._health()
        status = DiagnosticStatus(
            level=bytes([health.level]),
            name=f"{self._node.get_fully_qualified_name()}: {self._task}",
            message=health.message,
            hardware_id=self._hardware_id,
            values=[KeyValue(key=key, value=str(value)) for key, value in health.values.items()],
        )
        array = DiagnosticArray(status=[status])
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)

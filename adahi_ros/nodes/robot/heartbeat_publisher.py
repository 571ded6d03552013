# SPDX-License-Identifier: Apache-2.0
"""Publishes the heartbeats of the policy runner."""

from __future__ import annotations

from rclpy.node import Node
from std_msgs.msg import Empty

from adahi_ros.nodes.common.graph import node_of
from adahi_ros.nodes.common.timers import steady_timer
from adahi_ros.nodes.robot.heartbeat_watch import PERIOD_S, QOS, TOPIC


class HeartbeatPublisher:
    """Publishes heartbeats from `begin` to `end`.

    Args:
        node: the policy runner's.
        policy: name of the policy's node, relative to the namespace.
    """

    def __init__(self, node: Node, policy: str) -> None:
        # A node's services have its name before theirs, so they are resolved alike.
        self._node, self._policy, self._beats = node, node.resolve_service_name(policy), False
        self._publisher = node.create_publisher(Empty, TOPIC, QOS)
        steady_timer(node, PERIOD_S, self._beat)

    @property
    def received(self) -> bool:
        """Whether the policy's node subscribes to them; a recorder may, too."""
        return any(node_of(at) == self._policy for at in self._node.get_subscriptions_info_by_topic(TOPIC))

    def begin(self) -> None:
        """Publish the first one at once."""
        self._beats = True
        self._beat()

    def end(self) -> None:
        """Stop; the policy's node deactivates itself if it is still active."""
        self._beats = False

    def _beat(self) -> None:
        if self._beats:
            self._publisher.publish(Empty())

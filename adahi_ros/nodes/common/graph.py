# SPDX-License-Identifier: Apache-2.0
"""Publishers of a topic, by the identity that DDS gives each publisher (GID)."""

from __future__ import annotations

from rclpy.node import Node


def publishers_of(node: Node, topic: str, kind: str = "") -> dict[bytes, str]:
    """Return the node name, with its namespace, of each publisher of a topic, by GID.

    Args:
        node: that asks.
        topic: resolved, as in `subscription.topic_name`.
        kind: only those of this message type, such as std_msgs/msg/Bool; empty for all.
    """
    return {
        bytes(each.endpoint_gid): f"{each.node_namespace.rstrip('/')}/{each.node_name}"
        for each in node.get_publishers_info_by_topic(topic)
        if not kind or each.topic_type == kind
    }

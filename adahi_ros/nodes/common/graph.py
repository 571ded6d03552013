# SPDX-License-Identifier: Apache-2.0
"""Publishers and subscriptions of topics; publishers by the identity that DDS gives each (GID)."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from rclpy.node import Node
from rclpy.topic_endpoint_info import TopicEndpointInfo

from adahi_ros.contract.published import Endpoint

UNKNOWN = "_NODE_NAME_UNKNOWN_"  # until DDS has discovered an endpoint's node


def publishers_of(node: Node, topic: str, kind: str = "") -> dict[bytes, str]:
    """Return the node name, with its namespace, of each publisher of a topic, by GID.

    Args:
        node: that asks.
        topic: resolved, as in `subscription.topic_name`.
        kind: only those of this message type, such as std_msgs/msg/Bool; empty for all.
    """
    return {
        bytes(each.endpoint_gid): node_of(each)
        for each in node.get_publishers_info_by_topic(topic)
        if not kind or each.topic_type == kind
    }


def subscriptions_of(node: Node, topic: str) -> dict[bytes, str]:
    """Return the full node name of each other node's subscription, by GID: of `takers`, if there are any."""
    found = takers(node, topic) or node.get_subscriptions_info_by_topic(topic)  # a bridge is no taker
    names = {bytes(each.endpoint_gid): node_of(each) for each in found}
    return {gid: name for gid, name in names.items() if name != node.get_fully_qualified_name()}


def takers(node: Node, topic: str) -> list[TopicEndpointInfo]:
    """Return the subscriptions of a resolved topic, but of nodes that publish it, too: they watch others."""
    publish = {node_of(each) for each in node.get_publishers_info_by_topic(topic)}
    found = node.get_subscriptions_info_by_topic(topic)
    return [each for each in found if node_of(each) not in publish or each.node_name == UNKNOWN]


def node_of(endpoint: TopicEndpointInfo) -> str:
    """Return the full name of an endpoint's node."""
    return f"{endpoint.node_namespace.rstrip('/')}/{endpoint.node_name}"


def endpoints(node: Node, kinds: Collection[str], subscriptions: bool = False) -> dict[str, list[Endpoint]]:
    """Return the publishers, or the `takers`, of each topic that has one of these message types."""
    found = partial(takers, node) if subscriptions else node.get_publishers_info_by_topic
    return {
        topic: [_endpoint(each) for each in found(topic)]
        for topic, its_kinds in node.get_topic_names_and_types()
        if not set(kinds).isdisjoint(its_kinds)
    }


def _endpoint(info: TopicEndpointInfo) -> Endpoint:
    qualities = info.qos_profile.reliability.name.lower(), info.qos_profile.durability.name.lower()
    return Endpoint(node_of(info), info.topic_type, *qualities)

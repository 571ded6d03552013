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
    """Return the full node name of each of the `takers`, by GID."""
    return {bytes(each.endpoint_gid): node_of(each) for each in takers(node, topic)}


def takers(node: Node, topic: str) -> list[TopicEndpointInfo]:
    """Return the subscriptions of a resolved topic, but of policies: they watch others."""
    return [each for each in node.get_subscriptions_info_by_topic(topic) if not _is_policy(node, each)]


def _is_policy(node: Node, endpoint: TopicEndpointInfo) -> bool:
    try:
        found = node.get_service_names_and_types_by_node(endpoint.node_name, endpoint.node_namespace)
    except RuntimeError:  # the node's name is not known yet
        return False
    return f"{node_of(endpoint)}/give_back" in dict(found)  # drivers have services such as set_enabled


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

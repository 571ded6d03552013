# SPDX-License-Identifier: Apache-2.0
"""Topics of a robot in a bag, by their names in a contract."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from adahi_ros.contract.contract import Contract

Kinds = Mapping[str, str]
"""From topics, as a contract names them, to the types of their messages."""

NO_TOPICS: Kinds = MappingProxyType({})
EPISODE_RESULT: Kinds = MappingProxyType({"episode_result": "adahi_msgs/msg/EpisodeResult"})
INSTRUCTION: Kinds = MappingProxyType({"instruction": "std_msgs/msg/String"})
ASSIGNMENTS: Kinds = MappingProxyType({"assignments": "adahi_msgs/msg/Assignments"})
"""Read from any namespace: the topic is the verifier's, and its messages name the robots."""
DRAFT_STATUS: Kinds = MappingProxyType({"draft_status": "adahi_msgs/msg/DraftStatus"})
BESIDE_A_RUN: Kinds = MappingProxyType(
    {
        "link_state": "adahi_msgs/msg/LinkState",
        "safety_state": "adahi_msgs/msg/SafetyState",
        **EPISODE_RESULT,
    }
)
DIAGNOSTICS: Kinds = MappingProxyType({"/diagnostics": "diagnostic_msgs/msg/DiagnosticArray"})


def topics_of(contract: Contract) -> dict[str, str]:
    """Return the topics of a contract's observations and actions; goals of ROS actions have no topic."""
    sinks = {
        sink.channel.topic: sink.channel.kind for sink in contract.action.sinks if not sink.is_ros_action
    }
    return {**{topic: channel.kind for topic, channel in contract.channels.items()}, **sinks}


def absolute(topic: str, namespace: str = "") -> str:
    """Return the full name of a topic of a robot in a namespace."""
    if topic.startswith("/"):
        return topic
    return "/" + "/".join(part for part in (namespace.strip("/"), topic) if part)

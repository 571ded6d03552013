"""Which QoS a contract's topics are subscribed with by the robot's node, and how a bag notes QoS."""

from __future__ import annotations

import itertools

import pytest
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rosbags.interfaces import QosDurability, QosHistory, QosReliability

from adahi_ros.contract.contract import DURABILITIES, HISTORIES, RELIABILITIES, Channel
from adahi_ros.nodes.common.qos import observation_qos
from adahi_ros.nodes.monitoring.bag_recorder_node import to_recorded


@pytest.mark.parametrize("words", [*itertools.product(RELIABILITIES, DURABILITIES, HISTORIES)])
def test_a_subscription_is_as_the_contract_says(words: tuple[str, str, str]) -> None:
    qos = observation_qos(Channel("goal", "geometry_msgs/msg/PoseStamped", *words, depth=7))
    found = (qos.reliability, qos.durability, qos.history)
    assert tuple(each.name.lower() for each in found) == words
    assert qos.history == HistoryPolicy.KEEP_ALL or qos.depth == 7


@pytest.mark.parametrize("reliability", ["RELIABLE", "BEST_EFFORT"])
@pytest.mark.parametrize("durability", ["TRANSIENT_LOCAL", "VOLATILE"])
def test_a_bag_notes_what_a_publisher_offers(reliability: str, durability: str) -> None:
    offered = QoSProfile(
        depth=7, reliability=ReliabilityPolicy[reliability], durability=DurabilityPolicy[durability]
    )
    noted = to_recorded(offered)
    assert (noted.reliability, noted.durability) == (QosReliability[reliability], QosDurability[durability])
    assert (noted.history, noted.depth) == (QosHistory.KEEP_LAST, 7)

"""Which QoS a contract's topics are subscribed with, by the robot's node and by the recorder."""

from __future__ import annotations

import itertools

import pytest
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from adahi_ros.contract.contract import DURABILITIES, HISTORIES, RELIABILITIES, Channel
from adahi_ros.nodes.common.qos import observation_qos
from adahi_ros.nodes.monitoring.bag_recorder_node import fitting

RELIABLE, BEST_EFFORT = ReliabilityPolicy.RELIABLE, ReliabilityPolicy.BEST_EFFORT
KEPT, VOLATILE = DurabilityPolicy.TRANSIENT_LOCAL, DurabilityPolicy.VOLATILE


@pytest.mark.parametrize("words", [*itertools.product(RELIABILITIES, DURABILITIES, HISTORIES)])
def test_a_subscription_is_as_the_contract_says(words: tuple[str, str, str]) -> None:
    qos = observation_qos(Channel("goal", "geometry_msgs/msg/PoseStamped", *words, depth=7))
    found = (qos.reliability, qos.durability, qos.history)
    assert tuple(each.name.lower() for each in found) == words
    assert qos.history == HistoryPolicy.KEEP_ALL or qos.depth == 7


@pytest.mark.parametrize(
    ("offered", "asked", "found"),
    [
        ((RELIABLE, KEPT), None, (RELIABLE, KEPT)),
        ((BEST_EFFORT, KEPT), None, (BEST_EFFORT, KEPT)),
        ((RELIABLE, VOLATILE), ("best_effort", "volatile"), (RELIABLE, VOLATILE)),
        ((RELIABLE, KEPT), ("best_effort", "volatile"), (RELIABLE, VOLATILE)),
        ((BEST_EFFORT, VOLATILE), ("reliable", "transient_local"), (RELIABLE, KEPT)),
        ((BEST_EFFORT, KEPT), ("best_effort", "transient_local"), (BEST_EFFORT, KEPT)),
    ],
)
def test_a_recorder_hears_nothing_that_the_robots_node_does_not(
    offered: tuple[ReliabilityPolicy, DurabilityPolicy], asked: tuple[str, str] | None, found: object
) -> None:
    channel = None if asked is None else Channel("goal", "geometry_msgs/msg/PoseStamped", *asked)
    publisher = QoSProfile(depth=1, reliability=offered[0], durability=offered[1])
    qos = fitting([publisher], channel)
    assert (qos.reliability, qos.durability) == found

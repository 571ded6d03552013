# SPDX-License-Identifier: Apache-2.0
"""Types of messages by their names, and the QoS of topics and requests."""

from __future__ import annotations

import importlib
from typing import Any

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from adahi_ros.contract.contract import Channel
from adahi_ros.nodes.common.parameters import ParameterError

ASSIGNMENTS = "assignments"  # topic
REQUESTS_KEPT = 100  # by a busy verifier, of all its robots
LISTENING = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
"""For monitoring: matches any publisher, and causes no retransmissions."""


def observation_qos(channel: Channel) -> QoSProfile:
    """Return the QoS of a subscription to what a contract observes."""
    return QoSProfile(
        history=HistoryPolicy[channel.history.upper()],
        depth=channel.depth,
        reliability=ReliabilityPolicy[channel.reliability.upper()],
        durability=DurabilityPolicy[channel.durability.upper()],
    )


def notice_qos() -> QoSProfile:
    """Return the QoS of `assignments`: a late robot gets the newest message, which lists all robots."""
    return QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def verify_qos(reliability: str) -> QoSProfile:
    """Return the QoS of `verify_draft`, the same at both ends.

    Args:
        reliability: one of `RELIABILITIES`. With best_effort the robot repeats lost requests; with reliable
            DDS does, and acknowledges every message.
    """
    return QoSProfile(depth=REQUESTS_KEPT, reliability=ReliabilityPolicy[reliability.upper()])


def command_qos() -> QoSProfile:
    """Return the QoS of commands: reliable, as controllers subscribe, with depth 1.

    A new object each time, because rclpy writes QoS overrides into it.
    """
    return QoSProfile(depth=1)


def message_type(kind: str) -> Any:
    """Return the class of a message or action type, such as sensor_msgs/msg/JointState.

    Raises:
        ParameterError: its package is not installed, or has no such type.
    """
    package, folder, name = kind.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.{folder}"), name)
    except (ImportError, AttributeError):
        apt = f"apt install ros-$ROS_DISTRO-{package.replace('_', '-')}"
        raise ParameterError(
            f"contract: no message type {kind}; is {package} installed and sourced? {apt}"
        ) from None


def new_message(kind: str) -> Any:
    """Return an empty message of a type."""
    return message_type(kind)()

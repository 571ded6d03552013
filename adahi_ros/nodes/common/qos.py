# SPDX-License-Identifier: Apache-2.0
"""Types of messages by their names, and the QoS of topics and requests."""

from __future__ import annotations

import importlib
from typing import Any

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from adahi_ros.contract.contract import Channel
from adahi_ros.nodes.common.parameters import ParameterError

REQUESTS_KEPT = 100  # by a verifier that is busy, of all its robots together
LISTENING = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Of who only watches: heard from any publisher, and no load on one."""


def observation_qos(channel: Channel) -> QoSProfile:
    """Return the QoS of a subscription to what a contract observes."""
    return QoSProfile(
        history=HistoryPolicy[channel.history.upper()],
        depth=channel.depth,
        reliability=ReliabilityPolicy[channel.reliability.upper()],
        durability=DurabilityPolicy[channel.durability.upper()],
    )


def verify_qos(reliability: str) -> QoSProfile:
    """Return the QoS of `verify_draft`, the same at both ends.

    Args:
        reliability: one of `RELIABILITIES`. With best_effort a lost request is sent again by the
            robot, which knows when; with reliable DDS sends it again, and acknowledges every message.
    """
    return QoSProfile(depth=REQUESTS_KEPT, reliability=ReliabilityPolicy[reliability.upper()])


def command_qos() -> QoSProfile:
    """Return the QoS of commands: reliable, as controllers subscribe them, and only the newest matters.

    A new one each time: rclpy writes what is overridden into it.
    """
    return QoSProfile(depth=1)


def message_type(kind: str) -> Any:
    """Return the class of a type such as sensor_msgs/msg/JointState.

    Raises:
        ParameterError: its package is not installed, or has no such type.
    """
    package, _, name = kind.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.msg"), name)
    except (ImportError, AttributeError):
        raise ParameterError(
            f"contract: no message type {kind}; is {package} installed and sourced?"
        ) from None

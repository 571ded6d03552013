# SPDX-License-Identifier: Apache-2.0
"""With which QoS topics are subscribed to, and requests sent."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from adahi_ros.contract.contract import Channel

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

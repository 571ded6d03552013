# SPDX-License-Identifier: Apache-2.0
"""Reads the records of one robot's run, which its node publishes."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from adahi_ros.protocol.records import Reason, StepRecord


def step_record_from_message(message: Any, stamp_ns: int) -> StepRecord:
    """Read a record from a DraftStatus message, rclpy's or one read from a bag.

    Args:
        message: of the step.
        stamp_ns: of its header.

    Raises:
        ValueError: the reason is none of `Reason`.
    """
    other: dict[str, Any] = {
        "stamp_ns": stamp_ns,
        "episode": int(message.episode_id),
        "step": int(message.step_id),
        "accepted": tuple(map(bool, message.accepted)),
        "reason": Reason(message.reason),
        "reason_counts": tuple(map(int, message.reason_counts)),
        **{name: tuple(map(float, getattr(message, name))) for name in ("draft_action", "planned_action")},
        "action": tuple(map(float, message.action)),
    }
    same = {each.name: getattr(message, each.name) for each in fields(StepRecord) if each.name not in other}
    return StepRecord(**same, **other)

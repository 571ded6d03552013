# SPDX-License-Identifier: Apache-2.0
"""Reads the records of one robot's run, which its node publishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from adahi_ros.protocol.records import EpisodeRecord, Reason, StepRecord


def step_record_of(values: Mapping[str, Any]) -> StepRecord:
    """Read a record from the `json` form of its `dataclasses.asdict`."""
    tuples = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return StepRecord(**{**values, **tuples, "reason": Reason(values["reason"])})


def episode_record_from_message(message: Any) -> EpisodeRecord:
    """Return the end of an episode from an EpisodeResult."""
    return EpisodeRecord(message.episode_id, message.steps, message.success)


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


@dataclass(frozen=True)
class Crossed:
    """Traffic on an emulated link from the end of a run's first step to the end of its last.

    Attributes:
        steps: made meanwhile.
        bytes_up, bytes_down: whole Ethernet frames from robot to server, and back.
    """

    steps: int
    bytes_up: int
    bytes_down: int


@dataclass(frozen=True)
class RunRecord:
    """The records of a run over DDS, in order.

    Attributes:
        steps, episodes: their records.
        crossed: the traffic, where the verifier was across an emulated link.
    """

    steps: tuple[StepRecord, ...]
    episodes: tuple[EpisodeRecord, ...]
    crossed: Crossed | None = None

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> RunRecord:
        """Read a record from the `json` form of its `dataclasses.asdict`."""
        crossed = values["crossed"]
        return cls(
            tuple(map(step_record_of, values["steps"])),
            tuple(EpisodeRecord(**each) for each in values["episodes"]),
            None if crossed is None else Crossed(**crossed),
        )

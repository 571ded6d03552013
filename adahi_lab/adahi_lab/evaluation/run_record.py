# SPDX-License-Identifier: Apache-2.0
"""The records of one robot's run, as its node publishes them, and the traffic meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adahi_ros.protocol.records import Reason, StepRecord


def step_record_of(values: Mapping[str, Any]) -> StepRecord:
    """Read a record from the `json` form of its `dataclasses.asdict`."""
    tuples = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return StepRecord(**{**values, **tuples, "reason": Reason(values["reason"])})


def episode_record_from_message(message: Any) -> EpisodeRecord:
    """Return the end of an episode from an EpisodeResult."""
    return EpisodeRecord(message.episode_id, message.steps, message.success)


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


@dataclass(frozen=True)
class EpisodeRecord:
    """Result of one episode; fields as in `EpisodeResult.msg`."""

    episode: int
    steps: int
    success: bool

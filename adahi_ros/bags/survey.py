# SPDX-License-Identifier: Apache-2.0
"""A bag message by message: the observations that the robot's node would make of it, actions and faults."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from adahi_ros.bags.back_and_forth import BackAndForth
from adahi_ros.bags.bag_reader import OnLoss, Received, read_bag
from adahi_ros.bags.recorded_topics import topics_of
from adahi_ros.contract.assembler import Encode, Observation, ObservationAssembler, concerns
from adahi_ros.contract.contract import Contract, Source
from adahi_ros.contract.fields import NANOSECONDS, FieldReader, InputError, stamp_ns

FEWEST = 10  # times between samples, for a rate
SLOWEST = 0.8  # share of a contract's rate, below which samples make steps of another length


@dataclass(frozen=True)
class BagSurvey:
    """A bag's messages for a contract, before they are combined.

    Attributes:
        observations: how many the node would make.
        actions: how many messages have one.
        refused: by field, messages that were refused or have none of the names: their number, and
            the first fault.
        missed: by topic, the number of steps dropped for a missing sample of it, and the first fault.
        measured_twice: a line for each joint that two publishers measure.
        repeated: by topic of measured joints, the messages with the stamp of the one before.
        picture_faults: warnings of cameras.
        rate_hz: of the observations, by the median of their distances; 0 where there are few.
        quantiles: (3, S), of 10, 50 and 90 % of the observations' numbers; empty without observations.
    """

    observations: int
    actions: int
    refused: dict[str, tuple[int, str]]
    missed: dict[str, tuple[int, str]]
    measured_twice: tuple[str, ...] = ()
    repeated: dict[str, int] = field(default_factory=dict)
    picture_faults: tuple[str, ...] = ()
    rate_hz: float = 0.0
    quantiles: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)), compare=False)


@dataclass
class BagCounts:
    """Counts over all bags."""

    faults: Counter[str] = field(default_factory=Counter)
    first_faults: dict[str, str] = field(default_factory=dict)
    missed: dict[str, tuple[int, str]] = field(default_factory=dict)
    others: Counter[str] = field(default_factory=Counter)  # with none of the names; may be another robot's
    observations: int = 0
    actions: int = 0

    def fault(self, error: InputError, unmatched: bool = False) -> None:
        """Count a refused message, or one with none of the names."""
        (self.others if unmatched else self.faults)[error.field] += 1
        self.first_faults.setdefault(error.field, str(error))

    def miss(self, error: InputError) -> None:
        """Count a step that was dropped for a missing sample."""
        count, first = self.missed.get(error.field, (0, str(error)))
        self.missed[error.field] = count + 1, first

    def survey(self) -> BagSurvey:
        """Return the accepted and refused messages, the most frequent fault first."""
        commonest = (self.faults + self.others).most_common()
        refused = {name: (count, self.first_faults[name]) for name, count in commonest}
        return BagSurvey(self.observations, self.actions, refused, self.missed)


class BagPass:
    """One bag, message by message.

    Attributes:
        observations: those that the robot's node would make, without images.
        actions: of each sink with a topic, the times and the numbers of its commands.
        assembler: of the observations.

    Args:
        contract: of the robot.
        encode: from images to features.
        counts: gets what is refused.
    """

    def __init__(self, contract: Contract, encode: Encode | None, counts: BagCounts) -> None:
        self._contract = contract
        self._counts = counts
        self.assembler = ObservationAssembler(contract, encode, counts.miss)
        acted = [sink.source for sink in contract.action.sinks if not sink.is_ros_action]
        self._acted = [(source, source.reader()) for source in acted]
        sources = (*contract.numbers, *(() if contract.goal is None else (contract.goal,)), *acted)
        self._readers: dict[str, list[FieldReader]] = defaultdict(list)
        for source in sources:
            self._readers[source.channel.topic].append(source.reader())
        self._readers |= {camera.channel.topic: [] for camera in contract.cameras}
        self.observations: list[Observation] = []
        self.actions: list[list[tuple[int, np.ndarray]]] = [[] for _ in acted]

    def take(self, received: Received) -> None:
        """Take the next message."""
        topic, message = received.topic, received.message
        readers = self._readers.get(topic)
        if readers and not any(concerns(reader, message) for reader in readers):
            self._counts.fault(readers[0].unmatched(message), unmatched=True)
        try:
            if topic in self._contract.channels:
                observation = self.assembler.add(topic, message, received.received_ns)
                if observation is not None:
                    self.observations.append(replace(observation, images={}))  # only their features are used
                    self._counts.observations += 1
            for (source, reader), taken in zip(self._acted, self.actions, strict=True):
                if topic == source.channel.topic and concerns(reader, message):
                    at_ns, values = _acted(source, reader, message, received.received_ns)
                    if not at_ns and self.observations:  # of the newest one; later ones are a hold
                        at_ns = self.observations[-1].stamp_ns
                        at_ns = 0 if taken and taken[-1][0] >= at_ns else at_ns
                    taken.append((at_ns, values))
                    self._counts.actions += 1
        except InputError as error:
            self._counts.fault(error)


def _acted(source: Source, reader: FieldReader, message: Any, received_ns: int) -> tuple[int, np.ndarray]:
    """Return the time and the numbers of a command."""
    values = source.from_wire(reader.read(message))
    if source.align.timeline == "receive":
        return received_ns, values
    if not hasattr(message, "header"):
        name = source.channel.topic.lstrip("/")
        raise InputError(f"{name}.header", "the message has none; its timeline must be receive")
    return stamp_ns(message.header.stamp), values


def usual_rate_hz(stamps_ns: np.ndarray) -> float:
    """Return the rate of stamps (T,), by the median of the times between them; 0 for fewer than ten."""
    between_ns = np.diff(stamps_ns)
    usual_ns = float(np.median(between_ns)) if len(between_ns) >= FEWEST else 0.0
    return NANOSECONDS / usual_ns if usual_ns > 0.0 else 0.0


def too_slow(rate_hz: float, contract: Contract) -> str:
    """Return the fault of samples that come at less than the contract's rate; empty without one."""
    if not 0.0 < rate_hz < SLOWEST * contract.rate_hz:
        return ""
    return (
        f"fps: {contract.rate_hz:g}, must be at most the rate of the samples, which make {rate_hz:.3g} steps "
        "per second; slower ones need a larger align.tolerance_ms"
    )


def survey_bag(
    path: Path, contract: Contract, namespace: str = "", on_loss: OnLoss | None = None
) -> BagSurvey:
    """Count a bag's samples for a contract; no encoder is needed.

    Actions may be missing, as before the first motion. Goals of ROS actions are in no bag, and are not
    counted. For `on_loss` see `read_bag`.

    Raises:
        BagError: the bag cannot be used.
    """
    observed = {topic: channel.kind for topic, channel in contract.channels.items()}
    return survey(read_bag(path, observed, topics_of(contract), namespace, on_loss), contract)


def survey(messages: Iterable[Received], contract: Contract) -> BagSurvey:
    """Count the samples for a contract in messages, of a bag or of a robot; see `survey_bag`."""
    counts = BagCounts()
    nothing = np.zeros((len(contract.cameras), 1), dtype=np.float32)
    passed = BagPass(contract, lambda images: nothing, counts)
    measured = BackAndForth(contract.measured(contract.commanded_names).topics)
    for received in messages:
        passed.take(received)
        measured.take(received.topic, received.message, received.received_ns)
    size = contract.number_dim
    values = [each.values[:size] for each in passed.observations]
    return replace(
        counts.survey(),
        measured_twice=measured.faults(),
        repeated=dict(+measured.repeated),
        picture_faults=passed.assembler.picture_faults,
        rate_hz=usual_rate_hz(np.array([each.stamp_ns for each in passed.observations])),
        quantiles=np.quantile(np.stack(values), (0.1, 0.5, 0.9), axis=0) if values else np.zeros((0, size)),
    )

# SPDX-License-Identifier: Apache-2.0
"""A robot's contract: the topics and fields of an observation, and the destinations of an action.

`contract/parsing.py` reads it. See docs/reference/contract.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field

import numpy as np

from adahi_ros.contract.fields import NAMED, FieldReader, check_finite
from adahi_ros.contract.monitors import Monitor
from adahi_ros.contract.operators import Operator

JOINT_STATE = "sensor_msgs/msg/JointState"
COMMAND_FIELDS = ("positions", "velocities", "accelerations", "effort")  # of a JointTrajectoryPoint
GOALS = "goals"  # the field of a ROS action: a position that its driver reaches by itself
STRATEGIES = ("hold", "asof", "drop")
TIMELINES = ("header", "receive")
RELIABILITIES = ("best_effort", "reliable")
DURABILITIES = ("volatile", "transient_local")
BY_CONTRACT = "by_contract"  # of a parameter: use the value of the contract
HISTORIES = ("keep_last", "keep_all")


@dataclass(frozen=True)
class Channel:
    """A topic.

    Attributes:
        topic: relative to the robot's namespace unless it begins with a slash.
        kind: type of its messages, such as sensor_msgs/msg/JointState.
        reliability: of a subscription, a value of `RELIABILITIES`.
        durability: a value of `DURABILITIES`; transient_local also delivers earlier messages.
        history: of its queue, a value of `HISTORIES`.
        depth: of a queue that keeps the last.
    """

    topic: str
    kind: str
    reliability: str = "best_effort"
    durability: str = "volatile"
    history: str = "keep_last"
    depth: int = 10


@dataclass(frozen=True)
class Alignment:
    """The rule that selects a topic's sample for a control step at time t.

    Attributes:
        strategy: `hold` takes the newest not after t; `asof` the nearest, and waits for it; `drop` as hold,
            but within one control period.
        timeline: whether a message's time is that of its `header`, or when it was received (`receive`).
        tolerance_s: how far a sample may be from t.
    """

    strategy: str
    timeline: str
    tolerance_s: float


@dataclass(frozen=True)
class Source:
    """Numbers from a topic.

    Attributes:
        key: name of this part of the observation, such as observation.state.
        channel: their source or destination.
        select: D paths.
        align: in time.
        operators: applied in this order to what is read, and inversely to what is sent.
    """

    key: str
    channel: Channel
    select: tuple[str, ...]
    align: Alignment
    operators: tuple[Operator, ...] = ()

    @property
    def size(self) -> int:
        return len(self.select)

    def to_wire(self, values: np.ndarray) -> np.ndarray:
        """Convert numbers (D,) from the policy's units to the message's."""
        for operator in reversed(self.operators):
            values = operator.inverse(values)
        return values

    def from_wire(self, values: np.ndarray) -> np.ndarray:
        """Convert numbers (D,) from the message's units to the policy's.

        Raises:
            InputError: one is not finite as float32 there; names the key.
        """
        for operator in self.operators:
            values = operator.forward(values)
        if self.operators:
            check_finite(values, lambda wrong: f"{self.key}.{self.select[wrong]}")
        return values

    def reader(self) -> FieldReader:
        """Return the reader of a message's numbers."""
        return FieldReader(self.channel.topic.lstrip("/"), self.channel.kind, self.select)


@dataclass(frozen=True)
class Sink:
    """Destination of some entries of an action.

    Attributes:
        source: the topic or ROS action, its fields, and the conversion of numbers.
        names: of the D entries, where its messages are bare numbers; else empty, since the fields name them.
        field: quantity of these numbers, a value of `COMMAND_FIELDS`; else empty.
        arguments: values of its command sink's arguments, by name.
    """

    source: Source
    names: tuple[str, ...] = ()
    field: str = ""
    arguments: Mapping[str, object] = dataclass_field(default_factory=dict, hash=False)

    @property
    def key(self) -> str:
        return self.source.key

    @property
    def channel(self) -> Channel:
        return self.source.channel

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The joints of its entries; empty where neither its fields nor `names` name them."""
        if self.names or not (self.is_ros_action or self.channel.kind in NAMED):
            return self.names
        return tuple(path.partition(".")[2] for path in self.source.select)

    @property
    def is_ros_action(self) -> bool:
        """Whether it sends goals instead of messages."""
        return "/action/" in self.channel.kind


@dataclass(frozen=True)
class Action:
    """The wire format of an action: the entries of each sink, in order.

    Attributes:
        sinks: at least one.
    """

    sinks: tuple[Sink, ...]

    @property
    def size(self) -> int:
        """A."""
        return sum(sink.source.size for sink in self.sinks)

    @property
    def select(self) -> tuple[str, ...]:
        """Names of the A entries: paths in each sink's messages, or `FIELD.NAME` of the sink's names."""
        named = ([f"{sink.field}.{name}" for name in sink.names] or sink.source.select for sink in self.sinks)
        return tuple(entry for entries in named for entry in entries)

    def parts(self, values: np.ndarray) -> list[np.ndarray]:
        """Return the numbers of each sink among (A,)."""
        if len(self.sinks) == 1:
            return [values]
        return np.split(values, np.cumsum([sink.source.size for sink in self.sinks])[:-1])

    def to_wire(self, values: np.ndarray) -> np.ndarray:
        """Convert numbers (A,) from the policy's units to the messages'."""
        parts = zip(self.sinks, self.parts(values), strict=True)
        return np.concatenate([sink.source.to_wire(part) for sink, part in parts])

    def from_wire(self, values: np.ndarray) -> np.ndarray:
        """Convert numbers (A,) from the messages' units to the policy's.

        Raises:
            InputError: one is not finite as float32 there; names the key.
        """
        parts = zip(self.sinks, self.parts(values), strict=True)
        return np.concatenate([sink.source.from_wire(part) for sink, part in parts])


@dataclass(frozen=True)
class Camera:
    """Images from a topic.

    Attributes:
        key: observation.images.NAME.
        channel: their source.
        align: in time.
        rows, columns: of the image after resizing on the robot.
    """

    key: str
    channel: Channel
    align: Alignment
    rows: int
    columns: int


@dataclass(frozen=True)
class MeasuredPositions:
    """Positions of the commanded joints, where a contract observes them.

    Attributes:
        names: of the A joints.
        places: of each joint's position among the S numbers of an observation; None where it is not observed.
        topics: of each joint that is observed, by its name.
    """

    names: tuple[str, ...]
    places: tuple[int | None, ...]
    topics: Mapping[str, str] = dataclass_field(default_factory=dict, hash=False)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The joints without an observed position."""
        return tuple(name for name, place in zip(self.names, self.places, strict=True) if place is None)

    def positions_in(self, read: np.ndarray) -> np.ndarray:
        """Return the positions (A,) float64 in rad or m, NaN where they are unknown.

        Args:
            read: (S,) float64, an observation's numbers before any operator.
        """
        return np.array([np.nan if place is None else read[place] for place in self.places])


@dataclass(frozen=True)
class Contract:
    """Definition of a robot's observation and action.

    Attributes:
        robot_type: names the kind of robot.
        rate_hz: control steps per second.
        paced_by: the topic with the samples that start the control steps.
        max_age_s: of a message when it arrives, by its stamp.
        numbers: make the first S entries of an observation, in this order.
        cameras: their features are the last F, unless the images are for the target.
        encoder: of the images, a name below checkpoints/encoders or a path; empty without cameras, and for
            a target that reads the images themselves.
        goal: makes the goal; None for a policy without one.
        episode: provides the numbers of episode and step; None where the robot counts them itself.
        action: the wire format of an action.
        images_for_target: the robot sends the images, and encodes none; the encoder is the verifier's.
        driver: fields that must all allow motion; else the robot is held.
    """

    robot_type: str
    rate_hz: float
    paced_by: str
    max_age_s: float
    numbers: tuple[Source, ...]
    cameras: tuple[Camera, ...]
    encoder: str
    goal: Source | None
    episode: Source | None
    action: Action
    images_for_target: bool = False
    driver: tuple[Monitor, ...] = ()

    @property
    def number_dim(self) -> int:
        """S."""
        return sum(source.size for source in self.numbers)

    @property
    def named(self) -> dict[str, tuple[str, ...]]:
        """The numbers of each key; several parts of one key are joined in order."""
        entries: dict[str, tuple[str, ...]] = {}
        for source in self.numbers:
            entries[source.key] = (*entries.get(source.key, ()), *source.select)
        return entries

    @property
    def commanded_names(self) -> tuple[str, ...]:
        """The joints that are commanded, where the contract names them."""
        return tuple(name for sink in self.action.sinks for name in sink.joint_names)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The joints that are observed or commanded by name, each once."""
        observed = (each.select for each in self.numbers if each.channel.kind in NAMED)
        names = (path.partition(".")[2] for select in observed for path in select)
        return tuple(dict.fromkeys((*names, *self.commanded_names)))

    @property
    def goal_dim(self) -> int:
        """G."""
        return 0 if self.goal is None else self.goal.size

    @property
    def period_s(self) -> float:
        """Period of the control steps."""
        return 1.0 / self.rate_hz

    @property
    def observed(self) -> tuple[Source | Camera, ...]:
        """All subscribed sources."""
        extras = tuple(source for source in (self.goal, self.episode) if source is not None)
        return (*self.numbers, *self.cameras, *extras)

    @property
    def channels(self) -> dict[str, Channel]:
        """The subscribed topics, each once; the pacing topic comes after the other topics of its steps."""
        channels = {each.channel.topic: each.channel for each in reversed(self.observed)}
        pace = channels.pop(self.paced_by)
        return {**channels, self.paced_by: pace}

    def check_image_size(self, image_size: tuple[int, int]) -> None:
        """Check that cameras are resized to the encoder's input size.

        Args:
            image_size: the encoder's rows and columns.

        Raises:
            ValueError: one is not; names contract, key and encoder, with both sizes.
        """
        for camera in self.cameras:
            size = [camera.rows, camera.columns]
            if size != list(image_size):
                raise ValueError(
                    f"contract of {self.robot_type!r}: {camera.key}.apply.resize: {size}, must be "
                    f"{list(image_size)}, the image size of its encoder {self.encoder!r}"
                )

    def measured(self, names: Sequence[str]) -> MeasuredPositions:
        """Return the positions' indices of these joints in the numbers of an observation.

        Raises:
            ValueError: two topics have a joint of one of these names, so the commanded one is ambiguous.
        """
        places: dict[str, int] = {}
        topics: dict[str, str] = {}
        start = 0
        for source in self.numbers:
            if source.channel.kind == JOINT_STATE:
                for index, path in enumerate(source.select):
                    field, _, name = path.partition(".")
                    if field != "position" or name not in names:
                        continue
                    topic = topics.setdefault(name, source.channel.topic)
                    if topic != source.channel.topic:
                        raise ValueError(
                            f"contract: {path}: of {topic} and {source.channel.topic}, must be of one topic "
                            "where that joint is commanded"
                        )
                    places[name] = start + index
            start += source.size
        return MeasuredPositions(tuple(names), tuple(places.get(name) for name in names), topics)

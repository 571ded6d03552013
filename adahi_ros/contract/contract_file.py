# SPDX-License-Identifier: Apache-2.0
"""The fields of a contract file, checked, and the contract made from them (docs/reference/contract.md)."""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from dataclasses import field as dataclass_field
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from adahi_ros.contract.commanded import TWIST, check_topics_apart
from adahi_ros.contract.contract import (
    COMMAND_FIELDS,
    DURABILITIES,
    HISTORIES,
    RELIABILITIES,
    STRATEGIES,
    TIMELINES,
    Action,
    Alignment,
    Camera,
    Channel,
    Contract,
    Sink,
    Source,
)
from adahi_ros.contract.fields import NAMED, FieldReader, expanded
from adahi_ros.contract.monitors import MOST_MONITORS, Monitor
from adahi_ros.contract.operators import Operator, operator
from adahi_ros.contract.sinks import SINKS
from adahi_ros.contract.words import LONGEST_S, TOPIC, TYPE, Entry, Word
from adahi_ros.core.registry import arguments_of
from adahi_ros.core.schema import Listed, Schema, checked, must, one_of, within

IMAGE_TYPES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
WITHOUT_HEADER = ("std_msgs/msg/",)
POSITION = re.compile(r"position\..+")
CAMERA = "observation.images."
MAX_AGE_S = 0.2
DEEPEST = 10_000  # of a queue
MOST_PIXELS = 4096  # of an edge
ROS_ACTIONS = tuple(kind for kind in SINKS if "/action/" in kind)
# Sections of Rosetta without observation or action.
PASSED_OVER = (
    "robot_interface",
    "tasks",
    "rewards",
    "signals",
    "info",
    "complementary_data",
    "adjunct",
    "teleop",
)


@dataclass(frozen=True, kw_only=True)
class QosFields(Schema):
    """QoS of a subscription.

    Attributes:
        reliability: `best_effort` or `reliable`.
        durability: `volatile`, or `transient_local` to receive what a latched publisher sent before.
        history: `keep_last` or `keep_all`.
        depth: length of the queue, 1 to 10000.
    """

    reliability: Annotated[str, one_of(RELIABILITIES)] = "best_effort"
    durability: Annotated[str, one_of(DURABILITIES)] = "volatile"
    history: Annotated[str, one_of(HISTORIES)] = "keep_last"
    depth: Annotated[int, within(1, DEEPEST, "an integer")] = 10


@dataclass(frozen=True, kw_only=True)
class ChannelFields(Schema):
    """A topic or ROS action.

    Attributes:
        topic: relative to the robot's namespace unless it begins with a slash.
        type: `PACKAGE/msg/TYPE`; in `actions` also the type of a ROS action or of your own command sink.
        qos: of the subscription; sources of one topic need the same. Ignored for actions, which are reliable.
        dtype: a key of Rosetta's contracts; ignored.
        safety: a key of Rosetta's contracts; ignored.
    """

    topic: Annotated[Word, must("be names of letters, digits and _, with / between", TOPIC.fullmatch)]
    type: Annotated[Word, must("be PACKAGE/msg/TYPE", TYPE.fullmatch)]
    qos: QosFields = QosFields()
    dtype: Any = None
    safety: Any = None

    def made(self) -> Channel:
        return Channel(self.topic, self.type, **asdict(self.qos))


def _is_sink_type(name: str) -> bool:
    return TYPE.fullmatch(name) is not None or name in ROS_ACTIONS


@dataclass(frozen=True, kw_only=True)
class SinkChannelFields(ChannelFields):
    type: Annotated[Word, must(" or ".join(["be PACKAGE/msg/TYPE", *ROS_ACTIONS]), _is_sink_type)]


@dataclass(frozen=True, kw_only=True)
class AlignFields(Schema):
    """The sample that belongs to a step.

    Attributes:
        strategy: `hold`, `asof` or `drop`.
        timeline: `header` (the stamp) or `receive` (the arrival). By default header, where there is one.
        tolerance_ms: largest distance to the step. By default `max_age_s`; half a period for `asof`, a
            period for `drop`.
    """

    strategy: Annotated[str, one_of(STRATEGIES)] = "hold"
    timeline: Annotated[str, one_of(TIMELINES)] | None = None
    tolerance_ms: Annotated[float, within(0, 1e3 * LONGEST_S)] | None = None


@dataclass(frozen=True, kw_only=True)
class _Timed(Schema):
    """The fields that sources and cameras have in common.

    Attributes:
        channel: topic, type and QoS.
        align: which sample belongs to a step.
    """

    channel: ChannelFields
    align: AlignFields = AlignFields()

    def __post_init__(self) -> None:
        if self.align.timeline == "header" and not self._has_header:
            raise ValueError("align.timeline: 'header', must be receive: such messages have no header")

    @property
    def _has_header(self) -> bool:
        return not self.channel.type.startswith(WITHOUT_HEADER)

    def alignment(self, file: ContractFile) -> Alignment:
        """Return the alignment; its defaults depend on the whole contract."""
        period_s = 1.0 / file.fps
        strategy, timeline = self.align.strategy, self.align.timeline
        usual_s = {"hold": file.max_age_s, "asof": period_s / 2, "drop": period_s}[strategy]
        tolerance_ms = 1e3 * usual_s if self.align.tolerance_ms is None else self.align.tolerance_ms
        return Alignment(
            strategy, timeline or ("header" if self._has_header else "receive"), 1e-3 * tolerance_ms
        )


@dataclass(frozen=True, kw_only=True)
class SourceFields(_Timed):
    """A source of numbers.

    Attributes:
        select: paths of the numbers, in their order.
        apply: operators between the message's unit and the policy's.
        kind: a key of Rosetta's contracts; ignored.
    """

    select: Annotated[Listed[Entry], Field(min_length=1)]
    apply: Listed[Annotated[Operator, BeforeValidator(operator)]] = ()
    kind: Any = None  # Rosetta's

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.channel.type in IMAGE_TYPES:
            raise ValueError(f"channel.type: {self.channel.type}, an image must be {CAMERA}NAME")
        try:
            FieldReader("", self.channel.type, self.paths)
        except ValueError as error:
            raise ValueError(f"select: {error}") from None
        if len(set(self.paths)) != len(self.paths):
            raise ValueError(f"select: {list(self.select)}, must not name a field twice")
        for each in self.apply:
            if each.size not in (0, len(self.paths)):
                raise ValueError(
                    f"apply: a list of {each.size} numbers, must have {len(self.paths)}, as select"
                )

    @property
    def paths(self) -> tuple[str, ...]:
        return expanded(self.select)

    def made(self, key: str, file: ContractFile) -> Source:
        return Source(key, self.channel.made(), self.paths, self.alignment(file), self.apply)


@dataclass(frozen=True, kw_only=True)
class SinkFields(SourceFields):
    """An action.

    Attributes:
        names: of Float64MultiArray, the joint of each number.
        field: of Float64MultiArray, positions, velocities, accelerations or effort.
        arguments: other keys, such as `max_effort` of a gripper (N or N m), are arguments of the sink.
    """

    channel: SinkChannelFields
    names: Listed[Entry] = ()
    field: Annotated[str, one_of(COMMAND_FIELDS)] = ""
    arguments: dict[str, object] = dataclass_field(default_factory=dict)

    @classmethod
    def prepared(cls, values: dict[Any, Any]) -> dict[Any, Any]:
        """Return unknown keys as the arguments of the command sink."""
        own = {field.name for field in fields(cls)}
        given = {name: value for name, value in values.items() if name not in own}
        kept = {name: value for name, value in values.items() if name in own}
        return {**kept, "arguments": given} if given else values

    def __post_init__(self) -> None:
        super().__post_init__()
        names, kind = list(self.names), self.channel.type
        if names and (len(names) != len(self.paths) or len(set(names)) != len(names)):
            raise ValueError(f"names: {names}, must be {len(self.paths)} different ones, as of select")
        if bool(names) != bool(self.field):
            raise ValueError(f"names: {names}, must be there where field is, and only there")
        if names and (kind in NAMED or kind in (TWIST, *ROS_ACTIONS)):
            raise ValueError(f"names: {names}, must not be there: select names the entries of {kind}")
        if kind in ROS_ACTIONS and (len(self.paths) != 1 or not POSITION.fullmatch(self.paths[0])):
            raise ValueError(f"select: {list(self.paths)}, must be [position.JOINT]")
        known = arguments_of(SINKS[kind]) if self.arguments and kind in SINKS else {}
        for name, value in self.arguments.items():
            if name not in known:
                own = [field.name for field in fields(self) if field.name != "arguments"]
                raise ValueError(f"{name}: unknown, must be one of {', '.join([*own, *known])}")
            self.arguments[name] = known[name].checked(value)

    def sink(self, key: str, file: ContractFile) -> Sink:
        return Sink(self.made(key, file), self.names, self.field, self.arguments)


def _is_resize(apply: tuple[dict[str, tuple[int, ...]], ...]) -> bool:
    edges = apply[0].get("resize", ()) if len(apply) == 1 and len(apply[0]) == 1 else ()
    return len(edges) == 2 and all(1 <= edge <= MOST_PIXELS for edge in edges)


@dataclass(frozen=True, kw_only=True)
class CameraFields(_Timed):
    """A camera.

    Attributes:
        apply: `[resize: [ROWS, COLUMNS]]`: the camera's own size for a target that reads images, else the
            encoder's. Another aspect stretches the image.
    """

    apply: Annotated[
        Listed[dict[str, Listed[int]]],
        must(f"be [resize: [ROWS, COLUMNS]], two integers from 1 to {MOST_PIXELS}", _is_resize),
    ]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.channel.type not in IMAGE_TYPES:
            raise ValueError(f"channel.type: {self.channel.type!r}, must be one of {', '.join(IMAGE_TYPES)}")

    def made(self, key: str, file: ContractFile) -> Camera:
        return Camera(key, self.channel.made(), self.alignment(file), *self.apply[0]["resize"])


@dataclass(frozen=True, kw_only=True)
class ContractFile(Schema):
    """A contract as the file has it.

    Attributes:
        robot_type: names the kind of robot, and the task of its datasets and calibration.
        fps: control steps per second.
        paced_by: the observed topic with the samples that start the steps. By default that of the first
            observation.
        max_age_s: messages older than this at arrival are ignored; it also bounds how far clocks may differ.
        encoder: of the images: a name below `checkpoints/encoders`, or an absolute path.
        images_for_target: the robot sends the images and computes nothing with them. By default so with
            cameras and without `encoder`.
        observations: from keys to sources or lists of sources; a key that begins with
            `observation.images.` is a camera. The observation has them in this order, features last.
        goal: one source, the goal of the policy.
        episode: one source of two numbers, episode and step, on the topic of `paced_by`. Without it the robot
            counts.
        actions: from keys to sources, each with a topic or ROS action of its own. The policy's action has
            their numbers, one after the other.
        driver: at most 8 states of the driver that must allow motion.
    """

    robot_type: Word
    fps: Annotated[float, within(1.0 / LONGEST_S, LONGEST_S)]
    paced_by: Word | None = None
    max_age_s: Annotated[float, within(1.0 / LONGEST_S, LONGEST_S)] = MAX_AGE_S
    encoder: Annotated[str, must("be a printable text", str.isprintable)] = ""
    images_for_target: bool | None = None
    observations: Annotated[dict[Word, Any], Field(min_length=1)]
    goal: SourceFields | None = None
    episode: SourceFields | None = None
    actions: Annotated[dict[Word, SinkFields], Field(min_length=1)]
    driver: Annotated[Listed[Monitor], Field(max_length=MOST_MONITORS)] = ()

    @classmethod
    def prepared(cls, values: dict[object, object]) -> dict[object, object]:
        return {
            name: value
            for name, value in values.items()
            if name not in PASSED_OVER and not str(name).startswith("x-")
        }

    def made(self) -> Contract:
        """Return the contract."""
        numbers: list[Source] = []
        cameras: list[Camera] = []
        for key, entry in self.observations.items():
            where = f"observations.{key}"
            if key.startswith(CAMERA):
                cameras.append(checked(CameraFields, entry, where).made(key, self))
            elif isinstance(entry, list):
                several = checked(Annotated[Listed[SourceFields], Field(min_length=1)], entry, where)
                numbers += [each.made(key, self) for each in several]
            else:
                numbers.append(checked(SourceFields, entry, where).made(key, self))
        for_target = self.images_for_target
        if for_target and not cameras:
            raise ValueError("images_for_target: True, must be true or false, true only with cameras")
        if for_target is None:
            for_target = bool(cameras) and not self.encoder
        if bool(self.encoder) != bool(cameras) and not for_target:
            raise ValueError(
                f"encoder: {self.encoder!r}, must name one where there are cameras, and only there; with "
                "images_for_target there may be none"
            )
        observed: list[Source | Camera] = [*numbers, *cameras]
        sinks = tuple(entry.sink(key, self) for key, entry in self.actions.items())
        check_topics_apart(sinks, [sink.channel.topic.lstrip("/") for sink in sinks])
        return Contract(
            self.robot_type,
            self.fps,
            self.paced_by or observed[0].channel.topic,
            self.max_age_s,
            tuple(numbers),
            tuple(cameras),
            self.encoder,
            None if self.goal is None else self.goal.made("goal", self),
            None if self.episode is None else self.episode.made("episode", self),
            Action(sinks),
            for_target,
            self.driver,
        )

# SPDX-License-Identifier: Apache-2.0
"""A robot's contract, as a YAML file: read, checked, and complete.

The format is that of Rosetta's contracts (iblnkn/rosetta) where both say the same, with what hybrid inference
needs beside: what paces the control steps, a goal, the numbers of episode and step, an encoder for images.
See docs/reference/contract.md.
"""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from dataclasses import field as dataclass_field
from pathlib import Path
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
from adahi_ros.contract.words import LONGEST_S, TOPIC, TYPE, Word
from adahi_ros.core.assets import asset
from adahi_ros.core.registry import arguments_of
from adahi_ros.core.schema import Listed, Schema, Text, checked, must, one_of, within
from adahi_ros.core.texts import abridged
from adahi_ros.core.yaml_files import read_yaml

SHIPPED = "config/contracts"
IMAGE_TYPES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
WITHOUT_HEADER = ("std_msgs/msg/",)
POSITION = re.compile(r"position\.\S+")
CAMERA = "observation.images."
MAX_AGE_S = 0.2
DEEPEST = 10_000  # of a queue
MOST_PIXELS = 4096  # of an edge
ROS_ACTIONS = tuple(kind for kind in SINKS if "/action/" in kind)
# Sections of Rosetta's that say nothing about observation and action.
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


class ContractError(ValueError):
    """A contract that cannot be used; names file, field, value and what was allowed, at bearable length."""

    def __init__(self, message: str) -> None:
        super().__init__(abridged(message))


def contract_path(name: str) -> Path:
    """Return the file of a contract: one that exists, or a shipped one by its name.

    Raises:
        ContractError: there is none.
    """
    path = Path(name)
    try:
        if path.suffix not in (".yaml", ".yml"):
            return asset(f"{SHIPPED}/{name}.yaml")
        path = path.expanduser()
        if path.is_file():
            return path
        raise ContractError(f"contract: {name!r}, no such file")
    except (OSError, RuntimeError):  # such as a name that is too long for any file, or nobody's home
        known = ", ".join(sorted(path.stem for path in asset(SHIPPED).glob("*.yaml")))
        raise ContractError(f"contract: {name!r}, must be a YAML file or one of {known}") from None


def load_contract(name: str) -> Contract:
    """Read a contract.

    Args:
        name: of a shipped one, or the path of a YAML file.

    Raises:
        ContractError: there is none, or something in it is missing, unknown or wrong.
    """
    path = contract_path(name)
    try:
        return parse_contract(read_yaml(path))
    except OSError as error:
        raise ContractError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ContractError(f"{path}: {error}") from None


def parse_contract(values: Any) -> Contract:
    """Make a contract of what a YAML file says.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """
    file: _File = checked(_File, values)
    contract = file.made()
    _check_whole(contract)
    return contract


@dataclass(frozen=True, kw_only=True)
class _Qos(Schema):
    reliability: Annotated[str, one_of(RELIABILITIES)] = "best_effort"
    durability: Annotated[str, one_of(DURABILITIES)] = "volatile"
    history: Annotated[str, one_of(HISTORIES)] = "keep_last"
    depth: Annotated[int, within(1, DEEPEST, "an integer")] = 10


@dataclass(frozen=True, kw_only=True)
class _Channel(Schema):
    """A channel as the file has it; dtype and safety are Rosetta's and say nothing here."""

    topic: Annotated[Word, must("be names of letters, digits and _, with / between", TOPIC.fullmatch)]
    type: Annotated[Word, must("be PACKAGE/msg/TYPE", TYPE.fullmatch)]
    qos: _Qos = _Qos()
    dtype: Any = None
    safety: Any = None

    def made(self) -> Channel:
        return Channel(self.topic, self.type, **asdict(self.qos))


def _is_sink_type(name: str) -> bool:
    return TYPE.fullmatch(name) is not None or name in ROS_ACTIONS


@dataclass(frozen=True, kw_only=True)
class _SinkChannel(_Channel):
    type: Annotated[Word, must(" or ".join(["be PACKAGE/msg/TYPE", *ROS_ACTIONS]), _is_sink_type)]


@dataclass(frozen=True, kw_only=True)
class _Align(Schema):
    strategy: Annotated[str, one_of(STRATEGIES)] = "hold"
    timeline: Annotated[str, one_of(TIMELINES)] | None = None
    tolerance_ms: Annotated[float, within(0, 1e3 * LONGEST_S)] | None = None


@dataclass(frozen=True, kw_only=True)
class _Timed(Schema):
    """What sources and cameras have in common."""

    channel: _Channel
    align: _Align = _Align()

    def __post_init__(self) -> None:
        if self.align.timeline == "header" and not self._has_header:
            raise ValueError("align.timeline: 'header', must be receive: such messages have no header")

    @property
    def _has_header(self) -> bool:
        return not self.channel.type.startswith(WITHOUT_HEADER)

    def alignment(self, file: _File) -> Alignment:
        """Return the alignment; what it leaves out depends on the whole contract."""
        period_s = 1.0 / file.fps
        strategy, timeline = self.align.strategy, self.align.timeline
        usual_s = {"hold": file.max_age_s, "asof": period_s / 2, "drop": period_s}[strategy]
        tolerance_ms = 1e3 * usual_s if self.align.tolerance_ms is None else self.align.tolerance_ms
        return Alignment(
            strategy, timeline or ("header" if self._has_header else "receive"), 1e-3 * tolerance_ms
        )


@dataclass(frozen=True, kw_only=True)
class _Source(_Timed):
    select: Annotated[Listed[str], must("be a list of field paths", bool)]
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

    @property
    def paths(self) -> tuple[str, ...]:
        return expanded(self.select)

    def made(self, key: str, file: _File) -> Source:
        return Source(key, self.channel.made(), self.paths, self.alignment(file), self.apply)


@dataclass(frozen=True, kw_only=True)
class _Sink(_Source):
    channel: _SinkChannel
    names: Listed[Text] = ()
    field: Annotated[str, one_of(COMMAND_FIELDS)] = ""
    arguments: dict[str, Any] = dataclass_field(default_factory=dict)

    @classmethod
    def prepared(cls, values: dict[Any, Any]) -> dict[Any, Any]:
        """Return what is no field as the arguments of the command sink."""
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

    def sink(self, key: str, file: _File) -> Sink:
        return Sink(self.made(key, file), self.names, self.field, self.arguments)


def _is_resize(apply: tuple[dict[str, tuple[int, ...]], ...]) -> bool:
    edges = apply[0].get("resize", ()) if len(apply) == 1 and len(apply[0]) == 1 else ()
    return len(edges) == 2 and all(1 <= edge <= MOST_PIXELS for edge in edges)


@dataclass(frozen=True, kw_only=True)
class _Camera(_Timed):
    apply: Annotated[
        Listed[dict[str, Listed[int]]],
        must(f"be [resize: [ROWS, COLUMNS]], two integers from 1 to {MOST_PIXELS}", _is_resize),
    ]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.channel.type not in IMAGE_TYPES:
            raise ValueError(f"channel.type: {self.channel.type!r}, must be one of {', '.join(IMAGE_TYPES)}")

    def made(self, key: str, file: _File) -> Camera:
        return Camera(key, self.channel.made(), self.alignment(file), *self.apply[0]["resize"])


@dataclass(frozen=True, kw_only=True)
class _File(Schema):
    """A contract as the file has it."""

    robot_type: Word
    fps: Annotated[float, within(1.0 / LONGEST_S, LONGEST_S)]
    paced_by: Word | None = None
    max_age_s: Annotated[float, within(1.0 / LONGEST_S, LONGEST_S)] = MAX_AGE_S
    encoder: str = ""
    images_for_target: bool = False
    observations: Annotated[dict[str, Any], Field(min_length=1)]
    goal: _Source | None = None
    episode: _Source | None = None
    actions: Annotated[dict[Word, _Sink], Field(min_length=1)]
    driver: Annotated[Listed[Monitor], Field(max_length=MOST_MONITORS)] = ()

    @classmethod
    def prepared(cls, values: dict[Any, Any]) -> dict[Any, Any]:
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
                cameras.append(checked(_Camera, entry, where).made(key, self))
            elif isinstance(entry, list):
                several = checked(Annotated[Listed[_Source], Field(min_length=1)], entry, where)
                numbers += [each.made(key, self) for each in several]
            else:
                numbers.append(checked(_Source, entry, where).made(key, self))
        if self.images_for_target and not cameras:
            raise ValueError("images_for_target: True, must be true or false, true only with cameras")
        if bool(self.encoder) != bool(cameras) and not self.images_for_target:
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
            self.images_for_target,
            self.driver,
        )


def _check_whole(contract: Contract) -> None:
    observed = {source.channel.topic for source in contract.observed}
    if contract.paced_by not in observed:
        raise ValueError(f"paced_by: {contract.paced_by!r}, must be one of {', '.join(sorted(observed))}")
    sizes = {(camera.rows, camera.columns) for camera in contract.cameras}
    if len(sizes) > 1 and contract.encoder:
        raise ValueError(
            f"observations: images resized to {sorted(sizes)}, must be of one size, the encoder's"
        )
    channels: dict[str, Channel] = {}
    for each in contract.observed:
        first = channels.setdefault(each.channel.topic, each.channel)
        if first.kind != each.channel.kind:
            raise ValueError(f"{each.key}.channel.type: {first.topic} has two types, must have one")
        if first != each.channel:
            raise ValueError(
                f"{each.key}.channel.qos: {first.topic} has two, must have one for all its sources"
            )
    if contract.episode is not None:
        if contract.episode.channel.topic != contract.paced_by:
            raise ValueError(
                f"episode.channel.topic: {contract.episode.channel.topic!r}, must be the one that paces the "
                f"steps, {contract.paced_by!r}"
            )
        if contract.episode.size != 2:
            raise ValueError(
                f"episode.select: {list(contract.episode.select)}, must be two: episode and step"
            )

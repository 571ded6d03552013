# SPDX-License-Identifier: Apache-2.0
"""A robot's contract, as a YAML file: read, checked, and complete.

The format is that of Rosetta's contracts (iblnkn/rosetta) where both say the same, with what hybrid inference
needs beside: what paces the control steps, a goal, the numbers of episode and step, an encoder for images.
See docs/contract.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adahi_ros.contract.checks import (
    LONGEST_S,
    TOPIC,
    TYPE,
    check_keys,
    is_number,
    mapping,
    one_of,
    positive,
    word,
)
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
from adahi_ros.contract.monitors import monitors
from adahi_ros.contract.operators import Operator
from adahi_ros.contract.operators import operator as make_operator
from adahi_ros.contract.sinks import SINKS
from adahi_ros.core.assets import asset
from adahi_ros.core.registry import arguments_of
from adahi_ros.core.texts import abridged
from adahi_ros.core.yaml_files import read_yaml

SHIPPED = "config/contracts"
IMAGE_TYPES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
WITHOUT_HEADER = ("std_msgs/msg/",)
POSITION = re.compile(r"position\.\S+")
CAMERA = "observation.images."
SOURCE_KEYS = ("channel", "select", "align", "apply", "kind")
MAX_AGE_S = 0.2
DEEPEST = 10_000  # of a queue
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
    known = (
        "robot_type",
        "fps",
        "paced_by",
        "max_age_s",
        "encoder",
        "images_for_target",
        "observations",
        "goal",
        "episode",
        "actions",
        "driver",
    )
    top = {
        name: value
        for name, value in mapping("contract", values).items()
        if name not in PASSED_OVER and not str(name).startswith("x-")
    }
    check_keys("contract", top, known, required=("robot_type", "fps", "observations", "actions"))
    rate_hz = positive("fps", top["fps"])
    max_age_s = positive("max_age_s", top.get("max_age_s", MAX_AGE_S))
    parts = _Parts(1.0 / rate_hz, max_age_s)
    numbers, cameras = _observations(parts, top["observations"])
    goal = parts.source("goal", top["goal"]) if "goal" in top else None
    episode = parts.source("episode", top["episode"]) if "episode" in top else None
    action = _action(parts, top["actions"])
    observed: tuple[Source | Camera, ...] = (*numbers, *cameras)
    paced_by = top.get("paced_by", observed[0].channel.topic)
    encoder = top.get("encoder", "")
    for_target = top.get("images_for_target", False)
    if not isinstance(for_target, bool) or (for_target and not cameras):
        raise ValueError(f"images_for_target: {for_target!r}, must be true or false, true only with cameras")
    if not isinstance(encoder, str) or (bool(encoder) != bool(cameras) and not for_target):
        raise ValueError(
            f"encoder: {encoder!r}, must name one where there are cameras, and only there; with "
            "images_for_target there may be none"
        )
    contract = Contract(
        word("robot_type", top["robot_type"]),
        rate_hz,
        word("paced_by", paced_by),
        max_age_s,
        numbers,
        cameras,
        encoder,
        goal,
        episode,
        action,
        for_target,
        monitors(top.get("driver", [])),
    )
    _check_whole(contract)
    return contract


class _Parts:
    """Makes the parts of one contract, which knows what they have by default."""

    def __init__(self, period_s: float, max_age_s: float) -> None:
        self._period_s = period_s
        self._max_age_s = max_age_s

    def channel(self, where: str, values: Any, actions: tuple[str, ...] = ()) -> Channel:
        """Read a channel; of ROS actions it may be one of these types."""
        values = mapping(f"{where}.channel", values)
        # dtype and safety are Rosetta's: ours are float64, and the safety envelope's business.
        known = ("topic", "type", "qos", "dtype", "safety")
        check_keys(f"{where}.channel", values, known, required=("topic", "type"))
        qos = self._qos(f"{where}.channel.qos", values.get("qos", {}))
        topic = word(f"{where}.channel.topic", values["topic"])
        if not TOPIC.fullmatch(topic):
            raise ValueError(
                f"{where}.channel.topic: {topic!r}, must be names of letters, digits and _, with / between"
            )
        kind = word(f"{where}.channel.type", values["type"])
        if not TYPE.fullmatch(kind) and kind not in actions:
            allowed = " or ".join(["PACKAGE/msg/TYPE", *actions])
            raise ValueError(f"{where}.channel.type: {kind!r}, must be {allowed}")
        return Channel(topic, kind, **qos)

    def _qos(self, where: str, values: Any) -> dict[str, Any]:
        values = mapping(where, values)
        choices = {"reliability": RELIABILITIES, "durability": DURABILITIES, "history": HISTORIES}
        check_keys(where, values, (*choices, "depth"))
        for name, allowed in choices.items():
            if name in values:
                one_of(f"{where}.{name}", values[name], allowed)
        depth = values.get("depth", 1)
        if type(depth) is not int or not 1 <= depth <= DEEPEST:
            raise ValueError(f"{where}.depth: {depth!r}, must be an integer from 1 to {DEEPEST}")
        return values

    def align(self, where: str, values: Any, kind: str) -> Alignment:
        header = not kind.startswith(WITHOUT_HEADER)
        default = {"strategy": "hold", "timeline": "header" if header else "receive"}
        values = default | mapping(f"{where}.align", values)
        check_keys(f"{where}.align", values, ("strategy", "timeline", "tolerance_ms"))
        strategy, timeline = values["strategy"], values["timeline"]
        one_of(f"{where}.align.strategy", strategy, STRATEGIES)
        one_of(f"{where}.align.timeline", timeline, TIMELINES if header else ("receive",))
        usual_s = {"hold": self._max_age_s, "asof": self._period_s / 2, "drop": self._period_s}[strategy]
        tolerance_ms = values.get("tolerance_ms", 1e3 * usual_s)
        if not is_number(tolerance_ms) or not 0 <= tolerance_ms <= 1e3 * LONGEST_S:
            raise ValueError(
                f"{where}.align.tolerance_ms: {tolerance_ms!r}, must be from 0 to {1e3 * LONGEST_S:g}"
            )
        return Alignment(strategy, timeline, 1e-3 * tolerance_ms)

    def sink(self, where: str, values: Any) -> Sink:
        values = mapping(where, values)
        told = {name: values.pop(name) for name in ("names", "field") if name in values}
        given = {name: values.pop(name) for name in list(values) if name not in SOURCE_KEYS}
        actions = tuple(kind for kind in SINKS if "/action/" in kind)
        source = self.source(where, values, actions)
        names = told.get("names", [])
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            raise ValueError(f"{where}.names: {names!r}, must be a list of names")
        if names and (len(names) != source.size or len(set(names)) != len(names)):
            raise ValueError(f"{where}.names: {names!r}, must be {source.size} different ones, as of select")
        if "field" in told:
            one_of(f"{where}.field", told["field"], COMMAND_FIELDS)
        if bool(names) != ("field" in told):
            raise ValueError(f"{where}: names and field, must both be there, or neither")
        kind = source.channel.kind
        if names and (kind in NAMED or kind in (TWIST, *actions)):
            raise ValueError(
                f"{where}.names: {names!r}, must not be there: select names the entries of {kind}"
            )
        sink = Sink(source, tuple(names), told.get("field", ""), _arguments(where, kind, given))
        if sink.is_ros_action and (source.size != 1 or not POSITION.fullmatch(source.select[0])):
            raise ValueError(f"{where}.select: {list(source.select)}, must be [position.JOINT]")
        return sink

    def source(self, where: str, values: Any, actions: tuple[str, ...] = ()) -> Source:
        values = mapping(where, values)
        check_keys(where, values, SOURCE_KEYS, required=("channel", "select"))
        channel = self.channel(where, values["channel"], actions)
        if channel.kind in IMAGE_TYPES:
            raise ValueError(f"{where}.channel.type: {channel.kind}, an image must be {CAMERA}NAME")
        select = values["select"]
        if not isinstance(select, list) or not select or not all(isinstance(path, str) for path in select):
            raise ValueError(f"{where}.select: {select!r}, must be a list of field paths")
        try:
            paths = expanded(select)
            FieldReader("", channel.kind, paths)
        except ValueError as error:
            raise ValueError(f"{where}.select: {error}") from None
        if len(set(paths)) != len(paths):
            raise ValueError(f"{where}.select: {select!r}, must not name a field twice")
        align = self.align(where, values.get("align", {}), channel.kind)
        return Source(where, channel, paths, align, _operators(where, values.get("apply", [])))

    def camera(self, where: str, values: Any) -> Camera:
        values = mapping(where, values)
        check_keys(where, values, ("channel", "align", "apply"), required=("channel", "apply"))
        channel = self.channel(where, values["channel"])
        one_of(f"{where}.channel.type", channel.kind, IMAGE_TYPES)
        rows, columns = _resize(where, values["apply"])
        return Camera(where, channel, self.align(where, values.get("align", {}), channel.kind), rows, columns)


def _arguments(where: str, kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a command sink; only where there are any, its code is imported."""
    known = arguments_of(SINKS[kind]) if given and kind in SINKS else {}
    check_keys(where, given, (*SOURCE_KEYS, "names", "field", *known))
    return {name: known[name].checked(value, f"{where}.") for name, value in given.items()}


def _observations(parts: _Parts, values: Any) -> tuple[tuple[Source, ...], tuple[Camera, ...]]:
    numbers, cameras = [], []
    for key, entry in mapping("observations", values).items():
        if str(key).startswith(CAMERA):
            cameras.append(parts.camera(key, entry))
        else:
            if entry == []:
                raise ValueError(f"{key}: [], must be a source, or a list of at least one")
            numbers += [parts.source(key, each) for each in (entry if isinstance(entry, list) else [entry])]
    if not numbers and not cameras:
        raise ValueError("observations: none, must be at least one")
    return tuple(numbers), tuple(cameras)


def _action(parts: _Parts, values: Any) -> Action:
    sinks = tuple(
        parts.sink(word("actions", key), entry) for key, entry in mapping("actions", values).items()
    )
    if not sinks:
        raise ValueError("actions: none, must be at least one")
    check_topics_apart(sinks, [sink.channel.topic.lstrip("/") for sink in sinks])
    return Action(sinks)


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


def _operators(where: str, values: Any) -> tuple[Operator, ...]:
    if not isinstance(values, list):
        raise ValueError(f"{where}.apply: {values!r}, must be a list")
    try:
        return tuple(make_operator(entry) for entry in values)
    except ValueError as error:
        raise ValueError(f"{where}.apply: {error}") from None


def _resize(where: str, values: Any) -> tuple[int, int]:
    fault = f"{where}.apply: {values!r}, must be [resize: [ROWS, COLUMNS]]"
    if not isinstance(values, list) or len(values) != 1 or not isinstance(values[0], Mapping):
        raise ValueError(fault)
    size = values[0].get("resize")
    if len(values[0]) != 1 or not isinstance(size, list) or len(size) != 2:
        raise ValueError(fault)
    if not all(type(edge) is int and 1 <= edge <= 4096 for edge in size):
        raise ValueError(f"{where}.apply: resize {size!r}, must be two integers from 1 to 4096")
    return size[0], size[1]

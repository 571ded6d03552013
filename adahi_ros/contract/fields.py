# SPDX-License-Identifier: Apache-2.0
"""Makes numbers of messages: fields picked by path, by name or by index, and checked."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from adahi_ros.core.texts import nearest

LARGEST = float(np.finfo(np.float32).max)
LONGEST_SLICE = 10_000
SHOWN = reprlib.Repr()  # abbreviates a message's names in errors
SHOWN.maxlist = 30
SHOWN.maxstring = 100


class InputError(ValueError):
    """A message that must not move the robot; names the field, its value and what is allowed.

    Attributes:
        field: such as "joint_states.position".
    """

    def __init__(self, field: str, fault: str) -> None:
        super().__init__(f"{field}: {fault}")
        self.field = field


@dataclass(frozen=True)
class _FieldPart:
    """Numbers of one field of a message.

    Attributes:
        field: its path.
        names: of the entries, for a message that names them; else empty.
        indices: of the entries, for an array; empty for a number by itself.
    """

    field: str
    names: tuple[str, ...] = ()
    indices: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Naming:
    """Names of a message type's entries.

    Attributes:
        names: attribute that has the names.
        fields: attributes that have a value for each.
        holder: from the message to the object with the fields; raises `InputError` with the topic given.
    """

    names: str
    fields: tuple[str, ...]
    holder: Callable[[object, str], object]


def _itself(message: object, topic: str) -> object:
    return message


def _last_point(message: Any, topic: str) -> Any:
    if len(message.points) == 0:
        raise InputError(f"{topic}.points", "none, must be at least one")
    return message.points[-1]


NAMED = {
    "sensor_msgs/msg/JointState": _Naming("name", ("position", "velocity", "effort"), _itself),
    "trajectory_msgs/msg/JointTrajectory": _Naming(
        "joint_names", ("positions", "velocities", "accelerations", "effort"), _last_point
    ),
    "control_msgs/msg/JointJog": _Naming("joint_names", ("displacements", "velocities"), _itself),
}


def expanded(select: Sequence[str]) -> tuple[str, ...]:
    """Write out slices: `state.0:3` becomes `state.0`, `state.1`, `state.2`.

    Raises:
        ValueError: a slice is invalid, empty, or longer than any observation.
    """
    paths: list[str] = []
    for path in select:
        field, _, last = path.rpartition(".")
        if ":" not in last:
            paths.append(path)
            continue
        first, _, end = last.partition(":")
        if not (first.isdecimal() and end.isdecimal() and int(first) < int(end)):
            raise ValueError(f"{path!r}, a slice must be FIRST:END with FIRST below END")
        if int(end) > LONGEST_SLICE:
            raise ValueError(f"{path!r}, a slice must end at {LONGEST_SLICE} at most")
        paths += [f"{field}.{index}" for index in range(int(first), int(end))]
    return tuple(paths)


class FieldReader:
    """Reads the selected numbers of one type of message.

    Attributes:
        names_at: attribute of a message that names its entries; empty where there is none.
        wanted: names of entries that are read.

    Args:
        topic: for errors.
        kind: type of the message, such as sensor_msgs/msg/JointState.
        select: paths (see docs/reference/contract.md), with no slices left.

    Raises:
        ValueError: a path that this type of message does not have.
    """

    def __init__(self, topic: str, kind: str, select: Sequence[str]) -> None:
        self._topic = topic
        self._naming = NAMED.get(kind)
        if self._naming is None:
            self._parts = _plain_parts(select)
        else:
            self._parts = _named_parts(select, self._naming, kind)
        self.size = len(select)
        self.names_at = "" if self._naming is None else self._naming.names
        self.wanted = frozenset(name for part in self._parts for name in part.names)

    def unmatched(self, message: object) -> InputError:
        """Return the error for a message without any of the names: its names, and the wanted ones."""
        assert self._naming is not None
        names = list(getattr(message, self._naming.names))
        wanted = list(dict.fromkeys(name for part in self._parts for name in part.names))
        near = next(filter(None, (nearest(each, names) for each in wanted)), "")
        fault = f"{SHOWN.repr(names)}, has none of {wanted}{near}"
        return InputError(f"{self._topic}.{self._naming.names}", fault)

    def read(self, message: Any) -> np.ndarray:
        """Return the numbers (D,) float64.

        Raises:
            InputError: some are missing, of another size, or not finite as float32.
        """
        if self._naming is None:
            parts = [self._plain(message, part) for part in self._parts]
        else:
            parts = [self._named(message, part, self._naming) for part in self._parts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _named(self, message: object, part: _FieldPart, naming: _Naming) -> np.ndarray:
        names = list(getattr(message, naming.names))
        index = {name: position for position, name in enumerate(names)}
        missing = [name for name in part.names if name not in index]
        if missing:
            raise InputError(
                f"{self._topic}.{naming.names}", f"{SHOWN.repr(names)}, lacks {', '.join(missing)}"
            )
        if len(index) < len(names):  # names that are not selected may repeat
            twice = [name for name in part.names if names.count(name) > 1]
            if twice:
                raise InputError(
                    f"{self._topic}.{naming.names}", f"{SHOWN.repr(names)}, has {', '.join(twice)} twice"
                )
        field = f"{self._topic}.{part.field}"
        values = _array(field, getattr(naming.holder(message, self._topic), part.field))
        if len(values) != len(names):
            raise InputError(field, f"{len(values)} values, expected {len(names)}")
        return _picked(field, values, [index[name] for name in part.names])

    def _plain(self, message: Any, part: _FieldPart) -> np.ndarray:
        field, value = f"{self._topic}.{part.field}", message
        for attribute in part.field.split("."):
            try:
                value = value[int(attribute)] if attribute.isdecimal() else getattr(value, attribute)
            except (AttributeError, IndexError, TypeError):
                raise InputError(field, f"the message has no {attribute}") from None
        if not part.indices:
            if isinstance(value, str) or np.ndim(value):
                raise InputError(field, f"{type(value).__name__}, must be a number")
            return _picked(field, _array(field, [value]), [0], scalar=True)
        values = _array(field, value)
        size = len(part.indices)
        # Consecutive entries from the first are taken as the whole array: a longer array is another robot's.
        if part.indices == tuple(range(size)) and len(values) != size:
            raise InputError(field, f"{len(values)} values, expected {size}")
        if len(values) <= max(part.indices):
            raise InputError(field, f"{len(values)} values, expected at least {max(part.indices) + 1}")
        return _picked(field, values, part.indices)


def _plain_parts(select: Sequence[str]) -> tuple[_FieldPart, ...]:
    def array_of(path: str) -> str:
        field, _, last = path.rpartition(".")
        return field if last.isdecimal() and field else ""

    parts: list[_FieldPart] = []
    for field, paths in groupby(select, key=array_of):
        if field:
            parts.append(_FieldPart(field, indices=tuple(int(path.rpartition(".")[2]) for path in paths)))
        else:
            parts += [_FieldPart(path) for path in paths]
    return tuple(parts)


def _named_parts(select: Sequence[str], naming: _Naming, kind: str) -> tuple[_FieldPart, ...]:
    for path in select:
        field, _, name = path.partition(".")
        if field not in naming.fields or not name:
            raise ValueError(f"{path!r}, for {kind} must be FIELD.NAME with a field of {naming.fields}")
    return tuple(
        _FieldPart(field, names=tuple(path.partition(".")[2] for path in paths))
        for field, paths in groupby(select, key=lambda path: path.partition(".")[0])
    )


def _array(field: str, values: object) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(field, f"{type(values).__name__}, must be numbers") from None
    if array.ndim != 1:
        raise InputError(field, f"of shape {array.shape}, must be a list of numbers")
    return array


def check_finite(values: np.ndarray, where: Callable[[int], str]) -> None:
    """Check that numbers (D,) are finite as float32.

    Args:
        values: to check.
        where: from an entry's index to its name.

    Raises:
        InputError: one is not; names it.
    """
    sound = np.abs(values) <= LARGEST  # false for NaN
    if not sound.all():
        wrong = int(np.argmin(sound))
        raise InputError(where(wrong), f"{values[wrong]}, must be finite as float32")


def _picked(field: str, values: np.ndarray, indices: Sequence[int], scalar: bool = False) -> np.ndarray:
    picked = values[list(indices)]
    check_finite(picked, lambda wrong: field if scalar else f"{field}[{indices[wrong]}]")
    return picked


NANOSECONDS = 1_000_000_000


def stamp_ns(stamp: Any) -> int:
    """Return the time of a builtin_interfaces/Time, rclpy's or one read from a bag."""
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)

"""Messages with a few fields replaced by garbage of their type; knows the types, not what they mean."""

from __future__ import annotations

import re
from array import array
from typing import Any

from rclpy.serialization import serialize_message

from adahi_ros.nodes.common.message_types import message_type

from .values import MANY, Garbage

NANOSECONDS = 1_000_000_000
LARGEST_FLOAT32 = 3.4028234e38
SHIFTS_S = (0.0, 0.001, -0.001, 0.1, -0.1, 0.19, -0.19, 1.0, -1.0, 1e6, -1e6)
TYPECODES = {
    "double": "d",
    "float": "f",
    **{f"int{bits}": code for bits, code in ((8, "b"), (16, "h"), (32, "i"), (64, "q"))},
    **{f"uint{bits}": code for bits, code in ((8, "B"), (16, "H"), (32, "I"), (64, "Q"))},
    "octet": "B",
}


def mutated(message: Any, garbage: Garbage, fields: int = 3) -> Any:
    """Replace up to so many fields of a message; returns it."""
    kinds = message.get_fields_and_field_types()
    for _ in range(garbage.count(1, fields)):
        name = garbage.pick(sorted(kinds))
        setattr(message, name, _replaced(kinds[name], getattr(message, name), garbage))
    return message


def damaged(message: Any, garbage: Garbage) -> bytes:
    """Return a message serialized, and then damaged: what a broken sender or link gives."""
    data = serialize_message(message)
    return data[:4] + (garbage.damaged(data[4:]) or b"\0")  # without its header no middleware passes it on


def _replaced(kind: str, before: Any, garbage: Garbage) -> Any:
    sequence = re.fullmatch(r"sequence<(.+?)(?:, (\d+))?>", kind)
    if sequence:
        values = _sequence(sequence[1], list(before), garbage)
        return values[: int(sequence[2])] if sequence[2] else values  # no middleware sends more
    if kind == "builtin_interfaces/Time":
        return _stamp(before, garbage)
    if "/" in kind:
        return mutated(before, garbage, 1)
    return _single(kind, garbage)


def _stamp(before: Any, garbage: Garbage) -> Any:
    if garbage.chance(0.3):
        return mutated(before, garbage, 2)
    at = before.sec * NANOSECONDS + before.nanosec + round(garbage.pick(SHIFTS_S) * NANOSECONDS)
    return type(before)(sec=max(at // NANOSECONDS, -(2**31)), nanosec=at % NANOSECONDS)


def _single(kind: str, garbage: Garbage) -> Any:
    if kind == "boolean":
        return garbage.chance(0.5)
    if kind.startswith("string"):  # longer than it may be, too: that is sent
        return garbage.text()
    if kind == "double":
        return garbage.float()
    if kind == "float":
        value = garbage.float()
        return 1e38 if LARGEST_FLOAT32 < abs(value) < float("inf") else value
    if kind == "octet":
        return bytes([garbage.count(0, 255)])
    if "/" in kind:
        return mutated(message_type(kind.replace("/", "/msg/"))(), garbage)
    bits = int(re.sub(r"\D", "", kind))
    low = 0 if kind[0] == "u" else -(2 ** (bits - 1))
    return garbage.integer(low, low + 2**bits - 1)


def _sequence(kind: str, values: list[Any], garbage: Garbage) -> Any:
    how = garbage.count(0, 7)
    at = garbage.count(0, max(0, len(values) - 1))
    if how == 0:
        values = []
    elif how == 1:
        values = values[:at]
    elif how == 2:
        values = [*values, _single(kind, garbage)]
    elif how == 3 and "/" not in kind:
        values = [_single(kind, garbage)] * (MANY if garbage.chance(0.2) else 100)
    elif how == 4:
        values = values[::-1]
    elif how == 5:
        values = [*values, *values]
    elif how == 6:
        values = [_single(kind, garbage) for _ in values]
    elif values:
        values[at] = _single(kind, garbage)
    return array(TYPECODES[kind], values) if kind in TYPECODES else values

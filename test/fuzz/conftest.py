"""What garbage is: numbers, texts, torn bytes, and trees and messages that are nearly right.

`pytest test/fuzz` takes the same few inputs every time. With `--hypothesis-profile=long --timeout=0` it takes
others every time, for hours, and Hypothesis keeps what fails in .hypothesis.
"""

from __future__ import annotations

import copy
import math
import re
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from adahi_lab.nodes.task_state import to_task_state
from adahi_ros.nodes.common.messages import to_image, to_joint_state
from adahi_ros.nodes.common.qos import message_type
from test.system.conftest import stage  # a fixture: real nodes, as test/system has them

__all__ = ["stage"]

JOINTS = ("plate_roll_joint", "plate_pitch_joint")
MANY = 100_000
LARGEST_FLOAT32 = 3.4028234e38
Draw = Callable[[st.SearchStrategy[Any]], Any]
TYPECODES = {
    "double": "d",
    "float": "f",
    **{f"int{bits}": code for bits, code in ((8, "b"), (16, "h"), (32, "i"), (64, "q"))},
    **{f"uint{bits}": code for bits, code in ((8, "B"), (16, "H"), (32, "I"), (64, "Q"))},
}

floats = (
    st.sampled_from((math.nan, math.inf))
    | st.floats()
    | st.sampled_from((1e308, 5e-324, 1e38, 3.5e38, 1e9, 0.3, -0.0))
)
ENDS = (-1, 0, 1, 63, 255, 65535, 2**31 - 1, 2**32 - 1, 2**63 - 1, -(2**63))
integers = st.sampled_from((*ENDS, 10**400)) | st.integers()
NAMES = ("", " ", "nan", "1e9", "関節", "\u202e", "x" * 5000, JOINTS[0], "ball", "state.0:4", "/dev/null")
TEXTS = (
    "state.0:99999999999",
    "position.",
    "::",
    "%s{0}",
    "nowhere.yaml",
    "rgb8",
    "a/msg/B",
    "\x1b[2J\n",
    "~",
)
letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")  # no sender gets these out
texts = st.sampled_from((*NAMES, *TEXTS)) | st.text(letters, max_size=12)
leaves = st.none() | st.booleans() | floats | integers | texts
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


def torn(draw: Draw, data: bytes) -> bytes:
    """Return bytes cut off, flipped, repeated, or with others amid them."""
    at = draw(st.integers(0, max(0, len(data) - 1)))
    end = at + draw(st.integers(0, 64))
    how = draw(st.sampled_from(("cut off", "repeated", "blank", "full", "replaced")))
    if how == "cut off":
        return data[:at]
    if how == "replaced":
        return data[:at] + draw(st.binary(max_size=64)) + data[end:]
    amid = {"repeated": data[at:end] * 3, "blank": bytes(end - at), "full": b"\xff" * (end - at)}
    return data[:at] + amid[how] + data[end:]


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Return every place in a tree, as a container and the key or index in it."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else []
    return [found for key in keys for found in ((tree, key), *places(tree[key]))]


def nearly(draw: Draw, tree: Any) -> Any:
    """Return a tree with up to three places changed."""
    tree = copy.deepcopy(tree)
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 3)))):
        found = places(tree)
        if not found:
            return draw(values)
        container, key = draw(st.sampled_from(found))
        how = draw(st.sampled_from(("replaced", "replaced", "copied", "missing", "added", "renamed")))
        if how == "replaced":
            container[key] = draw(values)
        elif how == "copied":
            other, other_key = draw(st.sampled_from(found))
            container[key] = copy.deepcopy(other[other_key])
        elif how == "missing":
            container.pop(key)
        elif isinstance(container, list):
            container.insert(key, draw(values))
        else:
            container[draw(texts)] = container.pop(key) if how == "renamed" else draw(values)
    return tree


def mutated(draw: Draw, message: Any, fields: int = 3) -> Any:
    """Return a message with up to so many fields replaced by garbage of their type."""
    message = copy.deepcopy(message)
    kinds = message.get_fields_and_field_types()
    for _ in range(draw(st.integers(1, fields))):
        name = draw(st.sampled_from(sorted(kinds)))
        setattr(message, name, _of_kind(draw, kinds[name], getattr(message, name)))
    return message


def _of_kind(draw: Draw, kind: str, before: Any = None) -> Any:
    sequence = re.fullmatch(r"sequence<(.+?)(?:, (\d+))?>", kind)
    if sequence:
        entries = _entries(draw, sequence[1], list(before))[
            : int(sequence[2] or MANY)
        ]  # no middleware sends more
        return array(TYPECODES[sequence[1]], entries) if sequence[1] in TYPECODES else entries
    if "/" in kind:
        return mutated(draw, message_type(kind.replace("/", "/msg/"))() if before is None else before)
    if kind == "boolean":
        return draw(st.booleans())
    if kind.startswith("string"):  # longer than it may be, too: that is sent
        return draw(texts)
    if kind in ("float", "double"):
        value = draw(floats)
        return 1e38 if kind == "float" and LARGEST_FLOAT32 < abs(value) < math.inf else value
    if kind == "octet":
        return draw(st.binary(min_size=1, max_size=1))
    bits = int(re.sub(r"\D", "", kind))
    low = 0 if kind.startswith("u") else -(2 ** (bits - 1))
    inside = [end for end in ENDS if low <= end < low + 2**bits]
    return draw(st.sampled_from(inside) | st.integers(low, low + 2**bits - 1))


def _entries(draw: Draw, kind: str, entries: list[Any]) -> list[Any]:
    at = draw(st.integers(0, max(0, len(entries) - 1)))
    match draw(st.sampled_from(("cut", "reversed", "doubled", *["one"] * 5))):
        case "cut":
            return entries[:at]
        case "reversed":
            return entries[::-1]
        case "doubled":
            return entries * 2
    one = _of_kind(draw, kind)
    match draw(st.sampled_from(("at", "at", "at", "end", "all", "many"))):
        case "at":
            return [*entries[:at], one, *entries[at + 1 :]]
        case "end":
            return [*entries, one]
        case "all":
            return [one] * len(entries)
    return [one] * (MANY if kind in TYPECODES else 100)


def observed(episode: int, step: int, stamp_ns: int, camera: bool = False) -> dict[str, Any]:
    """Return the messages of a good observation of the ball."""
    state = np.zeros(0) if camera else np.full(4, 0.01 * step)
    messages = {"joint_states": to_joint_state(JOINTS, np.array([0.01, -0.02]), np.zeros(2), stamp_ns)}
    if camera:
        messages["camera/image_raw"] = to_image(np.full((64, 64, 3), step % 256, np.uint8), stamp_ns)
    return messages | {"task_state": to_task_state(state, np.array([0.1, 0.1]), episode, step, stamp_ns)}

# SPDX-License-Identifier: Apache-2.0
"""Plans in the answers of servers: one array, or an array of each part of an action by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from adahi_ros.policies.remote.packed_arrays import PackedError, unpack_openpi
from adahi_ros.policies.remote.remote import ServerFault, error_line

WHOLE = ("actions", "action")  # names of an array of all parts


def greeting_of(message: bytes) -> dict[Any, Any]:
    """Return the metadata that a server of openpi's protocol sends first.

    Raises:
        ServerFault: it is no such server.
    """
    try:
        greeting = unpack_openpi(message)
    except PackedError as error:
        raise ServerFault(f"is no policy server: begins with {error}") from None
    if not isinstance(greeting, dict):
        raise ServerFault(f"is no policy server: begins with a {type(greeting).__name__}, must be a mapping")
    return greeting


def openpi_answer(message: bytes) -> Any:
    """Return the content of an answer in openpi's format.

    Raises:
        ServerFault: it is an error, or cannot be read.
    """
    try:
        answer = unpack_openpi(message)
    except PackedError as error:
        raise ServerFault(f"answered with {error}") from None
    if isinstance(answer, dict) and answer.get("type") == "error":  # as vLLM-Omni answers
        raise ServerFault(f"answered with an error: {error_line(str(answer.get('message')))}")
    return answer


def plans_in(answer: Any, parts: Mapping[str, int], robots: int, horizon: int) -> np.ndarray:
    """Return the plans in an answer, (B, T or more, A) unless the server is wrong: `_checked` checks that.

    Args:
        answer: an array, or a mapping with `actions`, or with the parts of an action by name; with one
            robot, arrays may lack the first axis.
        parts: sizes of the parts by name, in the robot's order; empty where only one array is allowed.
        robots: B.
        horizon: T.

    Raises:
        ServerFault: there are no plans, or a part has another size.
    """
    if isinstance(answer, dict):
        whole = [answer[name] for name in WHOLE if name in answer and name not in parts]
        answer = whole[0] if whole else answer
    if isinstance(answer, np.ndarray | list):
        return _batched(answer, robots)
    if not isinstance(answer, dict) or not parts:
        raise ServerFault("answered without actions")
    answer = {str(name).removeprefix("action."): each for name, each in answer.items()}
    found = [_part(name, answer.get(name), robots, horizon, size) for name, size in parts.items()]
    if len({part.shape[:2] for part in found}) > 1:
        raise ServerFault(
            f"answered actions of shapes {[part.shape for part in found]}, must be of one length"
        )
    return np.concatenate(found, axis=2)


def _part(name: str, part: Any, robots: int, horizon: int, size: int) -> np.ndarray:
    batched = _batched(part, robots) if isinstance(part, np.ndarray | list) else None
    if batched is None or batched.ndim != 3 or batched.shape[2] != size:
        found = type(part).__name__ if batched is None else f"shape {batched.shape}"
        raise ServerFault(f"answered {name}: {found}, must be ({robots}, {horizon} or more, {size})")
    return batched


def _batched(given: np.ndarray | list[Any], robots: int) -> np.ndarray:
    """Return an array, or nested lists of numbers, with the robots first."""
    try:
        array = np.asarray(given)
    except ValueError:  # of several lengths
        array = np.array("")
    if isinstance(given, list) and array.dtype.kind not in "iuf":
        raise ServerFault("answered with lists that are no array of numbers")
    return array[None] if robots == 1 and array.ndim < 3 else array

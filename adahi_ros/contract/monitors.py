# SPDX-License-Identifier: Apache-2.0
"""Which states of a robot's driver allow motion: the contract's section `driver`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from adahi_ros.contract.checks import LONGEST_S, NAME, TOPIC, TYPE, check_keys, is_number, mapping, word

Value = int | str
FIELD = re.compile(rf"{NAME}(\.({NAME}|[0-9]{{1,4}})){{0,9}}")
MOST_MONITORS = 8
MOST_VALUES = 32
LONGEST_TEXT = 100


@dataclass(frozen=True)
class Monitor:
    """One field of a driver's messages, and the values that allow motion.

    Attributes:
        topic: relative to the robot's namespace unless it begins with a slash.
        kind: type of its messages, such as ur_dashboard_msgs/msg/RobotMode.
        field: dotted path; a number is an index into an array.
        running: values that allow motion.
        latched: the driver publishes on change, with durability transient_local.
        timeout_s: longest silence that allows motion; 0 for any.
    """

    topic: str
    kind: str
    field: str
    running: tuple[Value, ...]
    latched: bool = False
    timeout_s: float = 0.0

    def allows(self, value: Value) -> bool:
        """Return whether this value allows motion. A number never equals a text."""
        return any(value == each and isinstance(value, str) == isinstance(each, str) for each in self.running)


def monitors(values: Any) -> tuple[Monitor, ...]:
    """Read the section `driver`.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """
    if not isinstance(values, list) or len(values) > MOST_MONITORS:
        raise ValueError(f"driver: {values!r}, must be a list of at most {MOST_MONITORS} monitors")
    return tuple(_monitor(f"driver[{index}]", each) for index, each in enumerate(values))


def _monitor(where: str, values: Any) -> Monitor:
    values = mapping(where, values)
    required = ("topic", "type", "field", "running")
    check_keys(where, values, (*required, "latched", "timeout_s"), required)
    topic = _matching(f"{where}.topic", TOPIC, values["topic"], "names of letters, digits and _, with /")
    kind = _matching(f"{where}.type", TYPE, values["type"], "PACKAGE/msg/TYPE")
    field = _matching(f"{where}.field", FIELD, values["field"], "at most 10 names or indices, with . between")
    latched, timeout_s = values.get("latched", False), values.get("timeout_s", 0.0)
    if not isinstance(latched, bool):
        raise ValueError(f"{where}.latched: {latched!r}, must be true or false")
    if not is_number(timeout_s) or not 0.0 <= timeout_s <= LONGEST_S:
        raise ValueError(f"{where}.timeout_s: {timeout_s!r}, must be from 0 (none) to {LONGEST_S:g}")
    return Monitor(
        topic, kind, field, _running(f"{where}.running", values["running"]), latched, float(timeout_s)
    )


def _running(where: str, values: Any) -> tuple[Value, ...]:
    allowed = f"a list of 1 to {MOST_VALUES} integers, booleans or texts of at most {LONGEST_TEXT} characters"
    if not isinstance(values, list) or not 1 <= len(values) <= MOST_VALUES:
        raise ValueError(f"{where}: {values!r}, must be {allowed}")
    for value in values:
        if not isinstance(value, int | str) or len(str(value)) > LONGEST_TEXT:
            raise ValueError(f"{where}: {value!r}, must be {allowed}")
    return tuple(values)


def _matching(where: str, pattern: re.Pattern[str], value: Any, allowed: str) -> str:
    text = word(where, value)
    if len(text) > LONGEST_TEXT or not pattern.fullmatch(text):
        raise ValueError(f"{where}: {text!r}, must be {allowed}; at most {LONGEST_TEXT} characters")
    return text

# SPDX-License-Identifier: Apache-2.0
"""States of a robot's driver that allow motion: the contract's section `driver`."""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import PlainValidator, WrapValidator
from pydantic.dataclasses import dataclass

from adahi_ros.contract.words import LONGEST_S, NAME, TOPIC, TYPE, Word
from adahi_ros.core.schema import Schema, must, within

Value = int | str
FIELD = re.compile(rf"{NAME}(\.({NAME}|[0-9]{{1,4}})){{0,9}}")
MOST_MONITORS = 8
SILENCE_S = 1.0
MOST_VALUES = 32
LONGEST_TEXT = 100


def _running(values: object) -> tuple[Value, ...]:
    if (
        not isinstance(values, list | tuple)
        or not 1 <= len(values) <= MOST_VALUES
        or not all(isinstance(each, int | str) and len(str(each)) <= LONGEST_TEXT for each in values)
    ):
        raise ValueError(
            f"must be a list of 1 to {MOST_VALUES} integers, booleans or texts of at most "
            f"{LONGEST_TEXT} characters"
        )
    return tuple(values)


def _matching(pattern: re.Pattern[str], allowed: str) -> WrapValidator:
    words = f"be {allowed}; at most {LONGEST_TEXT} characters"
    return must(words, lambda text: len(text) <= LONGEST_TEXT and pattern.fullmatch(text) is not None)


@dataclass(frozen=True)
class Monitor(Schema):
    """One field of a driver's messages, and the values that allow motion.

    Attributes:
        topic: relative to the robot's namespace unless it begins with a slash.
        type: of its messages, such as ur_dashboard_msgs/msg/RobotMode.
        field: dotted path; in an array a number is an index, and a name that of an entry with this `name`.
        running: values that allow motion.
        latched: the driver publishes on change, with durability transient_local.
        timeout_s: longest silence that allows motion, 0 for any; without it any where latched, else
            `SILENCE_S`. A publisher that is gone never allows motion.
        optional: watched only where the type is installed and someone publishes.
    """

    topic: Annotated[Word, _matching(TOPIC, "names of letters, digits and _, with /")]
    type: Annotated[Word, _matching(TYPE, "PACKAGE/msg/TYPE")]
    field: Annotated[Word, _matching(FIELD, "at most 10 names or indices, with . between")]
    running: Annotated[tuple[Value, ...], PlainValidator(_running)]
    latched: bool = False
    timeout_s: Annotated[float, within(0, LONGEST_S)] | None = None
    optional: bool = False

    @property
    def silence_s(self) -> float:
        """Longest silence that allows motion, s; infinite for any."""
        given = (0.0 if self.latched else SILENCE_S) if self.timeout_s is None else self.timeout_s
        return given or math.inf

    def allows(self, value: Value) -> bool:
        """Return whether this value allows motion. A number never equals a text."""
        return any(value == each and isinstance(value, str) == isinstance(each, str) for each in self.running)

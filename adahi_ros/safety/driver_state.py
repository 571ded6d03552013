# SPDX-License-Identifier: Apache-2.0
"""Whether a robot's driver is in a state that allows motion. It has no ROS and no clock."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence

from adahi_ros.contract.monitors import Monitor, Value


class DriverState:
    """Remembers the last value of each monitored field.

    Args:
        monitors: all must allow motion.
    """

    def __init__(self, monitors: Sequence[Monitor]) -> None:
        self._monitors = tuple(monitors)
        self._seen: list[tuple[Value | None, float] | None] = [None] * len(self._monitors)

    def seen(self, index: int, value: Value | None, now_s: float) -> None:
        """Store the value of a message.

        Args:
            index: of the monitor.
            value: of its field; None where the message has no such field, or a value of another type.
            now_s: the time, on a clock that never jumps.
        """
        self._seen[index] = value, now_s

    def fault(self, now_s: float) -> str:
        """Return why the driver does not allow motion; empty where it does."""
        for monitor, seen in zip(self._monitors, self._seen, strict=True):
            where = f"driver {monitor.topic} {monitor.field}"
            allowed = f"must be {' or '.join(reprlib.repr(each) for each in monitor.running[:4])}"
            if seen is None:
                return f"{where}: no message yet, {allowed}"
            value, seen_s = seen
            if value is None:
                return f"{where}: the message has no such integer, boolean or text, {allowed}"
            if not monitor.allows(value):
                return f"{where}: {reprlib.repr(value)}, {allowed}"
            if 0.0 < monitor.timeout_s < now_s - seen_s:
                return f"{where}: no message for more than {monitor.timeout_s:g} s"
        return ""

# SPDX-License-Identifier: Apache-2.0
"""Whether a robot's driver is in a state that allows motion. It has no ROS and no clock."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence

from adahi_ros.contract.monitors import Monitor, Value


class DriverState:
    """Remembers the last value of each monitored field, and whether it has a publisher.

    Args:
        monitors: all must allow motion.
    """

    def __init__(self, monitors: Sequence[Monitor]) -> None:
        self._monitors = tuple(monitors)
        self._seen: list[tuple[Value | None, float] | None] = [None] * len(self._monitors)
        self._published = [True] * len(self._monitors)

    def seen(self, index: int, value: Value | None, now_s: float) -> None:
        """Store the value of a message.

        Args:
            index: of the monitor.
            value: of its field; None where the message has no such field, or a value of another type.
            now_s: the time, on a clock that never jumps.
        """
        self._seen[index] = value, now_s

    def published(self, index: int, publishers: int) -> None:
        """Note how many publishers a monitor's topic has."""
        self._published[index] = publishers > 0

    def fault(self, now_s: float) -> tuple[str, bool]:
        """Return why the driver does not allow motion, empty where it does; and whether that is known.

        It is not known where nothing but a first message is missing.
        """
        missing = ""
        for monitor, seen, published in zip(self._monitors, self._seen, self._published, strict=True):
            where = f"driver {monitor.topic} {monitor.field}"
            allowed = f"must be {' or '.join(reprlib.repr(each) for each in monitor.running[:4])}"
            if seen is None:
                missing = missing or f"{where}: no message yet, {allowed}"
            elif seen[0] is None:
                return f"{where}: the message has no such integer, boolean or text, {allowed}", True
            elif not monitor.allows(seen[0]):
                return f"{where}: {reprlib.repr(seen[0])}, {allowed}", True
            elif not published:
                return f"{where}: its publisher is gone", True
            elif now_s - seen[1] > monitor.silence_s:
                return f"{where}: no message for more than {monitor.silence_s:g} s", True
        return missing, not missing

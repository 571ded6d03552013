# SPDX-License-Identifier: Apache-2.0
"""Whether a robot's driver is in a state that allows motion. It has no ROS and no clock."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence

from adahi_ros.contract.monitors import LONGEST_TEXT, Monitor, Value
from adahi_ros.core.texts import shortened


class DriverState:
    """Remembers the last value of each monitored field, as long as its publisher exists.

    Args:
        monitors: all must allow motion.
    """

    def __init__(self, monitors: Sequence[Monitor]) -> None:
        self._monitors = tuple(monitors)
        self._seen: list[tuple[Value | None, float] | None] = [None] * len(self._monitors)
        self._publishers: list[Mapping[bytes, str]] = [{}] * len(self._monitors)
        self._gone = [False] * len(self._monitors)  # the publisher of the last value

    def seen(self, index: int, value: Value | None, now_s: float, known: bool = True) -> bool:
        """Store the value of a message.

        Args:
            index: of the monitor.
            value: of its field; None where the message has no such field, or a value of another type.
            now_s: the time, on a clock that never jumps.
            known: its publisher was alone on the topic. A value of another one only counts where it does not
                allow motion.

        Returns:
            Whether it is ignored.
        """
        if not known and value is not None and self._monitors[index].allows(value):
            return True
        self._seen[index] = value, now_s
        self._gone[index] = False
        return False

    def published(self, index: int, publishers: Mapping[bytes, str]) -> bool:
        """Note the publishers of a monitor's topic: what one has said is void when it is gone.

        Silence has a bound where the topic is not latched: another publisher may follow at once.

        Args:
            index: of the monitor.
            publishers: the node name of each, by GID.

        Returns:
            Whether what the others have latched is wanted again.
        """
        before, self._publishers[index] = self._publishers[index], publishers
        lost = before.keys() - publishers.keys() if self._monitors[index].latched else not publishers
        self._gone[index] |= bool(lost)
        return bool(lost and publishers)

    def fault(self, now_s: float) -> tuple[str, bool]:
        """Return why the driver does not allow motion, empty where it does; and whether that is known.

        It is not known where nothing but a first message is missing. An optional monitor misses none
        without a publisher.
        """
        missing = ""
        for monitor, seen, gone, publishers in zip(
            self._monitors, self._seen, self._gone, self._publishers, strict=True
        ):
            where = f"driver {monitor.topic} {monitor.field}"
            allowed = f"must be {' or '.join(reprlib.repr(each) for each in monitor.running[:4])}"
            if len(publishers) > 1:  # a message does not say of which one it is
                who = shortened(", ".join(sorted(publishers.values())), LONGEST_TEXT)
                return f"{where}: of {len(publishers)} publishers ({who}), must be one", True
            if seen is None:
                if monitor.optional and not publishers:
                    continue
                missing = missing or f"{where}: no message yet, {allowed}"
            elif seen[0] is None:
                return f"{where}: not in the message (not loaded?), or no number or text; {allowed}", True
            elif not monitor.allows(seen[0]):
                return f"{where}: {reprlib.repr(seen[0])}, {allowed}", True
            elif gone:
                return f"{where}: its publisher is gone; no message since then", True
            elif now_s - seen[1] > monitor.silence_s:
                return f"{where}: no message for more than {monitor.silence_s:g} s", True
        return missing, not missing

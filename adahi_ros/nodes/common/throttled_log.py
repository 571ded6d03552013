# SPDX-License-Identifier: Apache-2.0
"""Warnings that may come in floods.

The option `throttle_duration_sec` of rclpy's loggers inspects the call stack at every call, also for a
warning that it then suppresses. This class decides before it calls the logger.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from rclpy.node import Node

from adahi_ros.core.texts import printable

MOST_KEYS = 64
OVERFLOW = ""  # key of all warnings beyond those


class ThrottledLog:
    """Logs at most one warning per key and period, each with the count of those suppressed before it.

    Args:
        node: has the logger.
        period_s: between two warnings of one key.
        now: returns the time in seconds; must not be set back.
    """

    def __init__(self, node: Node, period_s: float = 1.0, now: Callable[[], float] = time.monotonic) -> None:
        self._node = node
        self._period_s = period_s
        self._now = now
        self._keys: dict[str, tuple[float, int]] = {}  # when logged, and how many suppressed since

    def warning(self, key: str, text: str | Callable[[], str]) -> None:
        """Log a warning, or count it as suppressed.

        Args:
            key: names the kind of warning; kinds beyond `MOST_KEYS` share one key.
            text: of the warning, or makes it; called only where the warning is logged.
        """
        if key not in self._keys and len(self._keys) >= MOST_KEYS:
            key = OVERFLOW
        now_s = self._now()
        logged_s, suppressed = self._keys.get(key, (-math.inf, 0))
        if now_s - logged_s < self._period_s:
            self._keys[key] = logged_s, suppressed + 1
            return
        self._keys[key] = now_s, 0
        line = text if isinstance(text, str) else text()
        about = f" ({suppressed} similar warning{'s' * (suppressed > 1)} suppressed)" if suppressed else ""
        self._node.get_logger().warning(printable(line + about))  # it may have words of a message

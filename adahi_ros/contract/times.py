# SPDX-License-Identifier: Apache-2.0
"""Times of messages, in nanoseconds since the epoch."""

from __future__ import annotations

from typing import Any

NANOSECONDS = 1_000_000_000


def stamp_ns(stamp: Any) -> int:
    """Return the time of a builtin_interfaces/Time, rclpy's or one read from a bag."""
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)

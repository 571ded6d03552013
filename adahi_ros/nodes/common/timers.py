# SPDX-License-Identifier: Apache-2.0
"""Timers that are set anew each time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]
from rclpy.node import Node

from adahi_ros.contract.fields import NANOSECONDS


class DueTimer:
    """Calls when something is due, and again at once until it is told what is due next.

    Attributes:
        timer: to be spun.

    Args:
        node: has the timer.
        call: what to do then; must set the timer anew.
    """

    def __init__(self, node: Node, call: Callable[[], None]) -> None:
        self._node = node
        # Steady: a clock that is set back must not put off what is due.
        self.timer = node.create_timer(1.0, call, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.timer.cancel()

    def set(self, due_s: float) -> None:
        """Call at this time of `time.monotonic`; infinite for never."""
        if math.isinf(due_s):
            self.timer.cancel()
        else:
            self.timer.timer_period_ns = round(max(0.0, due_s - time.monotonic()) * NANOSECONDS)
            self.timer.reset()

    def destroy(self) -> None:
        """Free the timer."""
        self._node.destroy_timer(self.timer)

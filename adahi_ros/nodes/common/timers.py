# SPDX-License-Identifier: Apache-2.0
"""Timers of nodes: all are made here, by a steady clock, so that a clock that is set back delays nothing."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack

from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]
from rclpy.node import Node
from rclpy.timer import Timer

from adahi_ros.contract.fields import NANOSECONDS


def steady_timer(
    node: Node, period_s: float, call: Callable[[], None], opened: ExitStack | None = None
) -> Timer:
    """Return a timer that calls once a period, until it is destroyed; `opened` destroys it."""
    timer = timer_by(Clock(clock_type=ClockType.STEADY_TIME), node, period_s, call)
    if opened is not None:
        opened.callback(node.destroy_timer, timer)
    return timer


def timer_by(clock: Clock, node: Node, period_s: float, call: Callable[[], None]) -> Timer:
    """Return a timer of this clock, such as that of a simulated world; else as `steady_timer`."""

    def fire() -> None:
        if timer in node.timers:  # else the events executor queued this call before the timer was destroyed
            call()

    timer: Timer = node.create_timer(period_s, fire, clock=clock)
    return timer


class DueTimer:
    """Calls a function at a set time, and again and again until the next time is set.

    Args:
        node: gets the timer.
        call: the function; must set the timer.
    """

    def __init__(self, node: Node, call: Callable[[], None]) -> None:
        self._node = node
        self._call = call
        self._due_s = math.inf
        self._timer = steady_timer(node, 1.0, self._fire)
        self._timer.cancel()

    def set(self, due_s: float) -> None:
        """Call at this time of `time.monotonic`; infinite for never."""
        if due_s == self._due_s:  # the usual case after a control step
            return
        self._due_s = due_s
        if math.isinf(due_s):
            self._timer.cancel()
        else:
            self._timer.timer_period_ns = round(max(0.0, due_s - time.monotonic()) * NANOSECONDS)
            self._timer.reset()

    def destroy(self) -> None:
        """Free the timer."""
        self._node.destroy_timer(self._timer)

    def _fire(self) -> None:
        self._due_s = math.nan  # so that any time counts as new
        self._call()

"""What is about to happen, gone through just before, to no effect.

Between two control steps, and while an answer is on its way, a processor does other things for milliseconds.
After that its caches hold nothing of what a step takes, and to fetch it from memory takes longer than to use
it. So the time before is used to fetch it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]
from rclpy.node import Node

from adahi_ros.nodes.common.timers import call_in

AHEAD_S = 0.001  # of the event, at its end: little enough to remember, enough for an event that is early
LATE_S = 0.0005  # at its beginning: then it would be in the way of what it is for


class Rehearsal:
    """Calls something shortly before an event, once; not where there is no time for it.

    Attributes:
        timer: that does it; to be spun.

    Args:
        node: has the timer.
        go_through: what the event will call for; must change nothing, and raise nothing.
    """

    def __init__(self, node: Node, go_through: Callable[[], None]) -> None:
        self._node = node
        self._go_through = go_through
        self._begin_s = 0.0
        self._takes_s = 0.0
        self.timer = node.create_timer(1.0, self._begin, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.timer.cancel()

    def expect(self, after_s: float | None) -> None:
        """Expect the event in so many seconds; None where that is unknown."""
        wait_s = None if after_s is None else after_s - AHEAD_S - self._takes_s
        if wait_s is None or wait_s <= 0.0:
            self._takes_s /= 2.0  # perhaps it took so long but once
            self.call_off()
            return
        self._begin_s = time.monotonic() + wait_s
        call_in(self.timer, wait_s)

    def call_off(self) -> None:
        """Expect nothing any more."""
        self.timer.cancel()

    def destroy(self) -> None:
        """Free the timer."""
        self._node.destroy_timer(self.timer)

    def _begin(self) -> None:
        self.timer.cancel()
        begin_s = time.monotonic()
        if begin_s < self._begin_s + LATE_S:
            self._go_through()
            self._takes_s = time.monotonic() - begin_s

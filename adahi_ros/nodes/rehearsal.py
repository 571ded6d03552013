"""What is about to happen, gone through just before, to no effect.

Between two control steps, and while an answer is on its way, a processor does other things for milliseconds.
After that its caches hold nothing of what a step takes, and to fetch it from memory takes longer than to use
it. So the time before is used to fetch it.
"""

from __future__ import annotations

from collections.abc import Callable

from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]
from rclpy.node import Node

from adahi_ros.contract.times import NANOSECONDS

AHEAD_S = 0.0015  # time enough to go through it, and little enough to remember it


class Rehearsal:
    """Calls something shortly before an event, once.

    Attributes:
        timer: that does it; to be spun.

    Args:
        node: has the timer.
        go_through: what the event will call for; must change nothing.
    """

    def __init__(self, node: Node, go_through: Callable[[], None]) -> None:
        self._node = node
        self._go_through = go_through
        self.timer = node.create_timer(1.0, self._begin, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.timer.cancel()

    def expect(self, after_s: float | None) -> None:
        """Expect the event in so many seconds; None where that is unknown. One too soon is not rehearsed."""
        if after_s is None or after_s <= AHEAD_S:
            self.timer.cancel()
            return
        self.timer.timer_period_ns = round((after_s - AHEAD_S) * NANOSECONDS)
        self.timer.reset()

    def call_off(self) -> None:
        """Expect nothing any more."""
        self.timer.cancel()

    def destroy(self) -> None:
        """Free the timer."""
        self._node.destroy_timer(self.timer)

    def _begin(self) -> None:
        self.timer.cancel()
        self._go_through()

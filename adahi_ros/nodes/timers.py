"""Timers that call once."""

from __future__ import annotations

from rclpy.timer import Timer

from adahi_ros.contract.times import NANOSECONDS


def call_in(timer: Timer, after_s: float | None) -> None:
    """Have a timer call after so long, and whenever as long again, until it is cancelled; None for never."""
    if after_s is None:
        timer.cancel()
    else:
        timer.timer_period_ns = round(after_s * NANOSECONDS)
        timer.reset()

"""Timers that are set anew each time."""

from __future__ import annotations

from rclpy.timer import Timer

from adahi_ros.contract.times import NANOSECONDS


def call_in(timer: Timer, after_s: float | None) -> None:
    """Have a timer call after so long, then again and again until it is cancelled; None for never."""
    if after_s is None:
        timer.cancel()
    else:
        timer.timer_period_ns = round(after_s * NANOSECONDS)
        timer.reset()

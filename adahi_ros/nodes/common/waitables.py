# SPDX-License-Identifier: Apache-2.0
"""Serve one waitable where no executor can: inside a callback, or after the executor has ended."""

from __future__ import annotations

from typing import Any

from rclpy.context import Context
from rclpy.impl.implementation_singleton import rclpy_implementation

from adahi_ros.contract.fields import NANOSECONDS


def serve_waitable(waitable: Any, context: Context, timeout_s: float) -> None:
    """Wait for what a waitable receives, and execute it. It schedules no callback of a future.

    Args:
        waitable: of rclpy, such as an action client.
        context: of the waitable's node.
        timeout_s: the longest wait.
    """
    sizes = waitable.get_num_entities()
    waited = rclpy_implementation.WaitSet(
        sizes.num_subscriptions,
        sizes.num_guard_conditions,
        sizes.num_timers,
        sizes.num_clients,
        sizes.num_services,
        sizes.num_events,
        context.handle,
    )
    waited.clear_entities()
    waitable.add_to_wait_set(waited)
    waited.wait(round(timeout_s * NANOSECONDS))
    if not waitable.is_ready(waited):
        return
    execution = waitable.execute(waitable.take_data())
    try:
        execution.send(None)  # an action client without feedback callbacks never suspends
    except StopIteration:
        return
    execution.close()

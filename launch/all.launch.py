# SPDX-License-Identifier: Apache-2.0
"""Refuses to start: this launch file moved to another package."""

from __future__ import annotations

from launch import LaunchContext, LaunchDescription
from launch.actions import OpaqueFunction


def refuse(context: LaunchContext) -> None:
    now = " ".join(["ros2 launch adahi_lab all.launch.py", *context.argv])
    raise RuntimeError(f"all.launch.py has moved; use: {now}")


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription([OpaqueFunction(function=refuse)])

# SPDX-License-Identifier: Apache-2.0
"""Starts the router that rmw_zenoh needs on each machine, with settings for a wireless link. Not tried."""

from __future__ import annotations

import os
from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction
from launch.substitutions import LaunchConfiguration

from adahi_ros.nodes.launching.middleware import router_override

SHIPPED = Path(__file__).absolute().parents[1] / "config" / "dds"
OVERRIDE = "ZENOH_CONFIG_OVERRIDE"


def start(context: LaunchContext) -> list[ExecuteProcess]:
    peers = LaunchConfiguration("peers").perform(context)
    value = router_override(peers, SHIPPED, os.environ.get(OVERRIDE, ""))
    command = ["ros2", "run", "rmw_zenoh_cpp", "rmw_zenohd"]
    return [ExecuteProcess(cmd=command, additional_env={OVERRIDE: value}, output="screen")]


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "peers",
                default_value="",
                description="Addresses of machines at the other end, separated by ;, to connect to their "
                "routers; one end is enough",
            ),
            OpaqueFunction(function=start),
        ]
    )

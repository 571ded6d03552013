# SPDX-License-Identifier: Apache-2.0
"""Configures the middleware for a wireless link: sets variables for the nodes that start after it."""

from __future__ import annotations

import os
from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction, SetEnvironmentVariable
from launch.substitutions import LaunchConfiguration

from adahi_ros.nodes.launching.middleware import middleware_environment

SHIPPED = Path(__file__).absolute().parents[1] / "config" / "dds"


def set_environment(context: LaunchContext) -> list[LogInfo | SetEnvironmentVariable]:
    dds, peers = (LaunchConfiguration(name).perform(context) for name in ("dds", "peers"))
    rmw = os.environ.get("RMW_IMPLEMENTATION", "")
    variables, remarks = middleware_environment(rmw, dds, peers, SHIPPED)
    return [
        *(LogInfo(msg=remark) for remark in remarks),
        *(SetEnvironmentVariable(name, value) for name, value in variables.items()),
    ]


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "dds",
                default_value="default",
                description="Profile of the middleware. default: unchanged environment; wireless: that "
                "in config/dds of the middleware that runs; or the path of your own file",
            ),
            DeclareLaunchArgument(
                "peers",
                default_value="",
                description="Addresses of hosts at the other end, separated by ;, for discovery without "
                "multicast",
            ),
            OpaqueFunction(function=set_environment),
        ]
    )

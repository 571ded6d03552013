# SPDX-License-Identifier: Apache-2.0
"""Configures DDS for a wireless link: sets environment variables for the nodes that start after it."""

from __future__ import annotations

from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable
from launch.substitutions import LaunchConfiguration

SHIPPED = Path(__file__).absolute().parents[1] / "config" / "dds"


def profiles_of(dds: str) -> tuple[Path, Path, Path]:
    """Return the files that Fast DDS 2, Fast DDS 3 and Cyclone DDS read.

    Raises:
        ValueError: neither a shipped profile nor a file.
    """
    if dds == "wireless":
        return (
            SHIPPED / "fastdds_wireless.xml",
            SHIPPED / "fastdds_3_wireless.xml",
            SHIPPED / "cyclonedds_wireless.xml",
        )
    file = Path(dds).absolute()
    if not file.is_file():
        raise ValueError(f"dds: {dds!r}; allowed are default, wireless, and the path of an XML file")
    return file, file, file


def set_environment(context: LaunchContext) -> list[SetEnvironmentVariable]:
    dds = LaunchConfiguration("dds").perform(context)
    peers = LaunchConfiguration("peers").perform(context)
    variables: dict[str, str] = {}
    if dds != "default":
        fast, fast_3, cyclone = profiles_of(dds)
        variables["FASTRTPS_DEFAULT_PROFILES_FILE"] = str(fast)
        variables["FASTDDS_DEFAULT_PROFILES_FILE"] = str(fast_3)  # read since Fast DDS 3
        variables["CYCLONEDDS_URI"] = cyclone.as_uri()
    if peers:
        variables["ROS_STATIC_PEERS"] = peers
        # Not LOCALHOST: with it rmw_fastrtps adds transports to the profile's, and sends everything twice.
        variables["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "SUBNET"
    return [SetEnvironmentVariable(name, value) for name, value in variables.items()]


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "dds",
                default_value="default",
                description="DDS profile. default: unchanged environment; wireless: the profiles in "
                "config/dds; or the path of your own XML file",
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

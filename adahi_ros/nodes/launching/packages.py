# SPDX-License-Identifier: Apache-2.0
"""Optional packages of a launch: started if they are installed, or if an argument requires them."""

from __future__ import annotations

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch.launch_context import LaunchContext
from launch.logging import get_logger


def is_installed(package: str) -> bool:
    """Whether a ROS package is in the sourced environment."""
    try:
        get_package_prefix(package)
    except PackageNotFoundError:
        return False
    return True


def require(argument: str, package: str) -> None:
    """Check that a package is installed.

    Raises:
        ValueError: it is not; names the argument that needs it, and says how to install it.
    """
    if not is_installed(package):
        raise ValueError(f"{argument} needs {package}, which is not installed: {_apt(package)}")


def is_wanted(context: LaunchContext, argument: str, package: str = "") -> bool:
    """Whether to start a package's node; warns if the argument is `auto` and it is not installed.

    Args:
        context: of the launch.
        argument: with the value auto, true or false.
        package: its name; empty for the argument's name.

    Raises:
        ValueError: true, and it is not installed.
    """
    package = package or argument
    value = context.launch_configurations[argument]
    if value == "true":
        require(f"{argument}:=true", package)
    if value == "auto" and not is_installed(package):
        get_logger("launch").warning(f"{package} is not installed, and not started: {_apt(package)}")
        return False
    return value != "false"


def _apt(package: str) -> str:
    return f"apt install ros-$ROS_DISTRO-{package.replace('_', '-')}"

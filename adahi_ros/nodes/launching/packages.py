# SPDX-License-Identifier: Apache-2.0
"""Packages that a launch can do without: started where they are installed, or where that was asked for."""

from __future__ import annotations

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch.launch_context import LaunchContext
from launch.logging import get_logger


def is_installed(package: str) -> bool:
    """Whether a ROS package is in the environment that is sourced."""
    try:
        get_package_prefix(package)
    except PackageNotFoundError:
        return False
    return True


def require(argument: str, package: str) -> None:
    """Refuse to start without a package.

    Raises:
        ValueError: it is not installed; the message names what asks for it, and says how to install it.
    """
    if not is_installed(package):
        raise ValueError(f"{argument} needs {package}, which is not installed: {_apt(package)}")


def is_wanted(context: LaunchContext, argument: str, package: str = "") -> bool:
    """Whether a package's node is to be started; warns where `auto` finds that it is not installed.

    Args:
        context: of the launch.
        argument: whose value is auto, true or false.
        package: that it is about; of the argument's name where it is empty.

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

# SPDX-License-Identifier: Apache-2.0
"""Types of messages and actions by their names, as contracts and bags spell them."""

from __future__ import annotations

import importlib
from typing import Any

from adahi_ros.nodes.common.parameters import ParameterError


def message_type(kind: str) -> Any:
    """Return the class of a message or action type, such as sensor_msgs/msg/JointState.

    Raises:
        ParameterError: its package is not installed, or has no such type.
    """
    package, folder, name = kind.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.{folder}"), name)
    except (ImportError, AttributeError):
        apt = f"apt install ros-$ROS_DISTRO-{package.replace('_', '-')}"
        raise ParameterError(
            f"contract: no message type {kind}; is {package} installed and sourced? {apt}"
        ) from None


def new_message(kind: str) -> Any:
    """Return an empty message of a type."""
    return message_type(kind)()

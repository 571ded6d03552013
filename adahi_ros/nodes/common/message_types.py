# SPDX-License-Identifier: Apache-2.0
"""Message types by their names, as contracts and bags spell them."""

from __future__ import annotations

import importlib
from typing import Any

from adahi_ros.nodes.common.parameters import ParameterError


def message_type(kind: str) -> Any:
    """Return the class of a type such as sensor_msgs/msg/JointState.

    Raises:
        ParameterError: its package is not installed, or has no such type.
    """
    package, _, name = kind.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.msg"), name)
    except (ImportError, AttributeError):
        raise ParameterError(
            f"contract: no message type {kind}; is {package} installed and sourced?"
        ) from None

# SPDX-License-Identifier: Apache-2.0
"""Transitions of a lifecycle node that others ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def refusing(change_state: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Reply to a transition that the present state does not have with False; rclpy would end the process."""

    def reply(request: Any, response: Any) -> Any:
        try:
            return change_state(request, response)
        except RuntimeError:  # rclpy's RCLError is one
            response.success = False
            return response

    return reply

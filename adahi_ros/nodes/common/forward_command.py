# SPDX-License-Identifier: Apache-2.0
"""A command as bare numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from std_msgs.msg import Float64MultiArray

from adahi_ros.nodes.common.command_interfaces import CommandInterface, checked
from adahi_ros.nodes.common.messages import doubles


class ForwardCommandInterface(CommandInterface):
    """Bare numbers in the order of the controller's joints (forward_command_controller).

    The message names no joints and no field, and has no stamp.
    """

    message_type = Float64MultiArray
    stamped = False

    def message(
        self,
        names: Sequence[str],
        field: str,
        action: np.ndarray,
        period_s: float,
        stamp_ns: int,
        velocities: np.ndarray | None = None,
    ) -> Float64MultiArray:
        return Float64MultiArray(data=doubles(checked(action, names, field)))

    def action(self, message: Float64MultiArray, names: Sequence[str], field: str) -> np.ndarray:
        return checked(message.data, names, "data")

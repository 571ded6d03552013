# SPDX-License-Identifier: Apache-2.0
"""Bare numbers in the order of the controller's joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adahi_ros.contract.sinks.interface import Command, MessageSink, New, checked, doubles
from adahi_ros.core.registry import argument


@dataclass(frozen=True)
class ForwardCommandSink(MessageSink):
    """Commands forward_command_controller. The message names no joints and no field, and has no stamp."""

    kind = "std_msgs/msg/Float64MultiArray"
    stamped = False
    watchdog_s: float = argument(
        0.0, "s without a message, after which the driver stops the arm; 0 for never", 0.0, 10.0
    )

    def lasts(self, field: str) -> bool:
        return field != "positions" and not self.watchdog_s

    def message(self, command: Command, new: New) -> Any:
        message = new(self.kind)
        message.data = doubles(command.action)
        return message

    def action(self, message: Any, names: Sequence[str], field: str) -> np.ndarray:
        return checked(message.data, names, "data")

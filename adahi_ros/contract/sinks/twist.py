# SPDX-License-Identifier: Apache-2.0
"""Velocity of a body in a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adahi_ros.contract.sinks.interface import Command, MessageSink, New, checked, set_stamp
from adahi_ros.core.registry import argument

AXES = tuple(f"{part}.{axis}" for part in ("linear", "angular") for axis in "xyz")


@dataclass(frozen=True)
class TwistSink(MessageSink):
    """Commands MoveIt Servo: m/s and rad/s; axes that no entry commands are 0."""

    kind = "geometry_msgs/msg/TwistStamped"
    fields = ("velocities",)
    names = AXES

    frame_id: str = argument("base_link", "Frame of a twist")

    def message(self, command: Command, new: New) -> Any:
        message = new(self.kind)
        set_stamp(message, command.stamp_ns)
        message.header.frame_id = self.frame_id
        for name, value in zip(command.names, command.action.tolist(), strict=True):
            part, axis = name.split(".")
            setattr(getattr(message.twist, part), axis, value)
        return message

    def action(self, message: Any, names: Sequence[str], field: str) -> np.ndarray:
        twist = message.twist
        values = {axis: getattr(getattr(twist, axis[:-2]), axis[-1]) for axis in AXES}
        if message.header.frame_id != self.frame_id and any(values.values()):  # 0 is 0 in any frame
            raise ValueError(f"header.frame_id: {message.header.frame_id!r}, must be {self.frame_id!r}")
        for name, value in values.items():
            if name not in names and value != 0.0:
                raise ValueError(f"twist.{name}: {value}, must be 0: it is not commanded")
        return checked([values[name] for name in names], names, "twist")

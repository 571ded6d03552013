# SPDX-License-Identifier: Apache-2.0
"""A command as the velocity of a body."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import TwistStamped
from std_msgs.msg import Header

from adahi_ros.nodes.common.command_interfaces import CommandInterface, checked
from adahi_ros.nodes.common.messages import to_stamp
from adahi_ros.nodes.common.parameters import ParameterError

TWIST_AXES = tuple(f"{part}.{axis}" for part in ("linear", "angular") for axis in "xyz")


class TwistInterface(CommandInterface):
    """Velocity of a body in a frame, m/s and rad/s (MoveIt Servo); axes that no entry commands are 0."""

    message_type = TwistStamped
    fields = ("velocities",)
    names = TWIST_AXES

    def __init__(self, frame_id: str = "") -> None:
        super().__init__(frame_id)
        if not frame_id:
            raise ParameterError(
                "command.frame_id: '', must be the frame that the twist is expressed in, such as panda_link0"
            )

    def message(
        self,
        names: Sequence[str],
        field: str,
        action: np.ndarray,
        period_s: float,
        stamp_ns: int,
        velocities: np.ndarray | None = None,
    ) -> TwistStamped:
        message = TwistStamped(header=Header(stamp=to_stamp(stamp_ns), frame_id=self.frame_id))
        for name, value in zip(names, checked(action, names, field), strict=True):
            part, axis = name.split(".")
            setattr(getattr(message.twist, part), axis, float(value))
        return message

    def action(self, message: TwistStamped, names: Sequence[str], field: str) -> np.ndarray:
        if message.header.frame_id != self.frame_id:
            raise ValueError(f"header.frame_id: {message.header.frame_id!r}, must be {self.frame_id!r}")
        twist = message.twist
        values = {axis: getattr(getattr(twist, axis[:-2]), axis[-1]) for axis in TWIST_AXES}
        for name, value in values.items():
            if name not in names and value != 0.0:
                raise ValueError(f"twist.{name}: {value}, must be 0: it is not commanded")
        return checked([values[name] for name in names], names, "twist")

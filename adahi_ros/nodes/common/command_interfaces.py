# SPDX-License-Identifier: Apache-2.0
"""How an action reaches a controller: a message type per interface, both ways.

`message` makes the command of one control step, `action` reads it back, bit for bit. The way back is
the simulator's, and that of whoever reads a recording. A new interface is a class and an entry in
`COMMAND_INTERFACES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from geometry_msgs.msg import TwistStamped
from std_msgs.msg import Float64MultiArray, Header
from trajectory_msgs.msg import JointTrajectory

from adahi_ros.contract.contract import COMMAND_FIELDS
from adahi_ros.contract.times import NANOSECONDS
from adahi_ros.nodes.common.messages import doubles, from_stamp, to_command, to_stamp
from adahi_ros.nodes.common.parameters import ParameterError, parameter

TWIST_AXES = tuple(f"{part}.{axis}" for part in ("linear", "angular") for axis in "xyz")


@dataclass(frozen=True)
class TwistParameters:
    """What commands of a `TwistInterface` need beside; of the group `command`."""

    frame_id: str = parameter("base_link", "Of a twist: the frame that it is expressed in")


class CommandInterface(ABC):
    """One kind of message that controllers take.

    Args:
        frame_id: coordinate frame that the command is expressed in; only a twist has one.

    Raises:
        ParameterError: the interface cannot be had, or not with this frame.
    """

    kind: str
    """Type of its messages, as contracts name it."""
    message_type: type
    fields: tuple[str, ...] = COMMAND_FIELDS
    """Which `command.field`s it carries."""
    names: tuple[str, ...] = ()
    """What it can command; empty for joints of any name."""
    stamped = True
    """Its messages have a stamp."""
    zero_is_receipt = False
    """The receiver counts a stamp of 0 from receipt; otherwise a command bears the time of its sending."""

    def __init__(self, frame_id: str = "") -> None:
        self.frame_id = frame_id

    @abstractmethod
    def message(
        self,
        names: Sequence[str],
        field: str,
        action: np.ndarray,
        period_s: float,
        stamp_ns: int,
        velocities: np.ndarray | None = None,
    ) -> Any:
        """Make the command of one control step.

        Args:
            names: what the action's entries command.
            field: what they are, one of `fields`. SI units (REP-103): rad or m, per s or s^2; N m or N.
            action: (A,) float.
            period_s: of the control.
            stamp_ns: when its time starts; in lockstep that of the observation. 0 for at its receipt.
            velocities: (A,) at the point, for positions; only a trajectory carries them.

        Raises:
            ValueError: the action has another size, or is not finite.
        """

    @abstractmethod
    def action(self, message: Any, names: Sequence[str], field: str) -> np.ndarray:
        """Return the action in a command, (A,) float64, in the order of `names`.

        Raises:
            ValueError: names the message's field, its value and what was expected.
        """

    def stamp_ns(self, message: Any) -> int:
        """Return a command's stamp; 0 where it has none."""
        return from_stamp(message.header.stamp) if self.stamped else 0

    def reach(self, message: Any, names: Sequence[str]) -> tuple[np.ndarray | None, float | None]:
        """Return the velocities (A,) at a trajectory's point and its time from start in s, None without.

        Raises:
            ValueError: names the message's field, its value and what was expected.
        """
        return None, None


class JointTrajectoryInterface(CommandInterface):
    """One point of a joint trajectory, to be reached in one control period (joint_trajectory_controller)."""

    kind = "trajectory_msgs/msg/JointTrajectory"
    message_type = JointTrajectory
    zero_is_receipt = True

    def message(
        self,
        names: Sequence[str],
        field: str,
        action: np.ndarray,
        period_s: float,
        stamp_ns: int,
        velocities: np.ndarray | None = None,
    ) -> JointTrajectory:
        message = to_command(names, field, _checked(action, names, field), period_s, stamp_ns)
        if velocities is not None and field == "positions":
            message.points[0].velocities = doubles(_checked(velocities, names, "velocities"))
        return message

    def action(self, message: JointTrajectory, names: Sequence[str], field: str) -> np.ndarray:
        order = _order(message.joint_names, names)
        if not message.points:
            raise ValueError("points: none, must be at least one")
        return _checked(getattr(message.points[0], field), names, f"points[0].{field}")[order]

    def reach(self, message: JointTrajectory, names: Sequence[str]) -> tuple[np.ndarray | None, float]:
        order, point = _order(message.joint_names, names), message.points[0]
        time_s = point.time_from_start.sec + point.time_from_start.nanosec / NANOSECONDS
        if not len(point.velocities):
            return None, time_s
        return _checked(point.velocities, names, "points[0].velocities")[order], time_s


class ForwardCommandInterface(CommandInterface):
    """Bare numbers in the order of the controller's joints (forward_command_controller).

    The message names no joints and no field, and has no stamp.
    """

    kind = "std_msgs/msg/Float64MultiArray"
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
        return Float64MultiArray(data=doubles(_checked(action, names, field)))

    def action(self, message: Float64MultiArray, names: Sequence[str], field: str) -> np.ndarray:
        return _checked(message.data, names, "data")


class TwistInterface(CommandInterface):
    """Velocity of a body in a frame, m/s and rad/s (MoveIt Servo); axes that no entry commands are 0."""

    kind = "geometry_msgs/msg/TwistStamped"
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
        for name, value in zip(names, _checked(action, names, field), strict=True):
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
        return _checked([values[name] for name in names], names, "twist")


class JointJogInterface(CommandInterface):
    """Joint velocities for one control period (MoveIt Servo)."""

    kind = "control_msgs/msg/JointJog"
    fields = ("velocities",)

    def __init__(self, frame_id: str = "") -> None:
        super().__init__(frame_id)
        try:
            from control_msgs.msg import JointJog
        except ImportError:  # it comes with ros2_control, not with ROS itself
            raise ParameterError(
                "command_interface: joint_jog needs control_msgs: apt install ros-$ROS_DISTRO-control-msgs"
            ) from None
        self.message_type = JointJog

    def message(
        self,
        names: Sequence[str],
        field: str,
        action: np.ndarray,
        period_s: float,
        stamp_ns: int,
        velocities: np.ndarray | None = None,
    ) -> Any:
        return self.message_type(
            header=Header(stamp=to_stamp(stamp_ns)),
            joint_names=list(names),
            velocities=doubles(_checked(action, names, field)),
            duration=period_s,
        )

    def action(self, message: Any, names: Sequence[str], field: str) -> np.ndarray:
        order = _order(message.joint_names, names)
        if len(message.displacements):
            raise ValueError(f"displacements: {list(message.displacements)}, must be none")
        return _checked(message.velocities, names, "velocities")[order]


COMMAND_INTERFACES: dict[str, type[CommandInterface]] = {
    "joint_trajectory": JointTrajectoryInterface,
    "forward_command": ForwardCommandInterface,
    "twist": TwistInterface,
    "joint_jog": JointJogInterface,
}
INTERFACE_OF_KIND = {each.kind: name for name, each in COMMAND_INTERFACES.items()}


def command_interface(name: str, names: Sequence[str], field: str, frame_id: str = "") -> CommandInterface:
    """Return the interface of this name, after a check that it can carry what is to be commanded.

    Args:
        name: a key of `COMMAND_INTERFACES`.
        names: what an action's entries command.
        field: what they are, such as `positions`.
        frame_id: coordinate frame that the command is expressed in; only a twist has one.

    Raises:
        ParameterError: names the parameter, its value and what is allowed.
    """
    kind = COMMAND_INTERFACES[name]
    if field not in kind.fields:
        raise ParameterError(
            f"command_interface: {name} carries {', '.join(kind.fields)}, and command.field is {field!r}"
        )
    if kind.names and not set(names) <= set(kind.names):
        raise ParameterError(
            f"command.joint_names: {list(names)}, must be of {', '.join(kind.names)} for {name}"
        )
    return kind(frame_id)


def _checked(values: Any, names: Sequence[str], where: str) -> np.ndarray:
    """Return as many finite numbers as there are names, (A,) float64."""
    action = np.asarray(values, dtype=np.float64)
    if action.shape != (len(names),):
        raise ValueError(f"{where}: {action.size} values, expected {len(names)}")
    if not np.isfinite(action).all():
        raise ValueError(f"{where}: {action.tolist()}, must be finite")
    return action


def _order(given: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return where each of the names is among those given."""
    if sorted(given) != sorted(names):
        raise ValueError(f"joint_names: {list(given)}, must be {list(names)}")
    return [list(given).index(name) for name in names]

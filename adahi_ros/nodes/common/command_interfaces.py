# SPDX-License-Identifier: Apache-2.0
"""How an action reaches a controller: a message type per interface, both ways.

`message` makes the command of one control step, `action` reads it back, bit for bit. The way back is
the simulator's, and that of whoever reads a recording. A new interface is a file and a line in
`COMMAND_INTERFACES`, or an entry point of another package; a line in `INTERFACE_OF_KIND` where contracts name
its type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adahi_ros.contract.contract import COMMAND_FIELDS
from adahi_ros.core.registry import Registry
from adahi_ros.nodes.common.messages import from_stamp
from adahi_ros.nodes.common.parameters import ParameterError, parameter


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


COMMAND_INTERFACES: Registry[type[CommandInterface]] = Registry(
    "adahi_ros.command_interfaces",
    {
        "joint_trajectory": "adahi_ros.nodes.common.joint_trajectory_command:JointTrajectoryInterface",
        "forward_command": "adahi_ros.nodes.common.forward_command:ForwardCommandInterface",
        "twist": "adahi_ros.nodes.common.twist_command:TwistInterface",
        "joint_jog": "adahi_ros.nodes.common.joint_jog_command:JointJogInterface",
    },
    CommandInterface,
)
INTERFACE_OF_KIND = {
    "trajectory_msgs/msg/JointTrajectory": "joint_trajectory",
    "std_msgs/msg/Float64MultiArray": "forward_command",
    "geometry_msgs/msg/TwistStamped": "twist",
    "control_msgs/msg/JointJog": "joint_jog",
}
"""By the type of messages, as contracts name it."""


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


def checked(values: Any, names: Sequence[str], where: str) -> np.ndarray:
    """Return as many finite numbers as there are names, (A,) float64."""
    action = np.asarray(values, dtype=np.float64)
    if action.shape != (len(names),):
        raise ValueError(f"{where}: {action.size} values, expected {len(names)}")
    if not np.isfinite(action).all():
        raise ValueError(f"{where}: {action.tolist()}, must be finite")
    return action


def order_of(given: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return where each of the names is among those given."""
    if sorted(given) != sorted(names):
        raise ValueError(f"joint_names: {list(given)}, must be {list(names)}")
    return [list(given).index(name) for name in names]

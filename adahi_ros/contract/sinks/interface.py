# SPDX-License-Identifier: Apache-2.0
"""The interface of sinks: converts a command into a message or a goal, and back.

A sink imports no ROS: contracts are also read without it. The node creates empty messages and goals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adahi_ros.contract.contract import COMMAND_FIELDS
from adahi_ros.contract.fields import NANOSECONDS, stamp_ns
from adahi_ros.core.command_curve import Curve

New = Callable[[str], Any]
"""Makes an empty message of a type, such as std_msgs/msg/Float64MultiArray."""


class CommandSink(ABC):
    """One type of message or ROS action that controllers take.

    A subclass is a frozen dataclass. Its fields made with `argument` are keys of an action in a contract.
    """

    kind: ClassVar[str]
    """Type of its messages or of its ROS action, as contracts name it."""


@dataclass(frozen=True)
class Command:
    """The command of one message in one control step.

    Attributes:
        names: of the A entries.
        field: their quantity, one of `COMMAND_FIELDS`. SI units (REP-103): rad or m, per s or s^2; N m or N.
        action: (A,) float64.
        period_s: of the control.
        stamp_ns: start time; in lockstep that of the observation; 0 for the time of receipt.
        curve: on which the controller is to follow the commands, its times in s after the stamp; None for
            the action alone. Only a trajectory has it.

    Raises:
        ValueError: the action has another size, or is not finite.
    """

    names: Sequence[str]
    field: str
    action: np.ndarray
    period_s: float
    stamp_ns: int
    curve: Curve | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "action", checked(self.action, self.names, self.field))


class MessageSink(CommandSink):
    """Commands as messages on a topic: one in every control step; the last ones bring the robot to rest."""

    fields: ClassVar[tuple[str, ...]] = COMMAND_FIELDS
    """The `command.field`s that it carries."""
    names: ClassVar[tuple[str, ...]] = ()
    """Names that it can command; empty for joints of any name."""
    stamped: ClassVar[bool] = True
    """Its messages have a header."""
    zero_is_receipt: ClassVar[bool] = False
    """The receiver counts a stamp of 0 from receipt; otherwise a command is stamped when it is sent."""

    def lasts(self, field: str) -> bool:
        """Whether the arm goes on with the last message of a field when no more come."""
        return False

    @abstractmethod
    def message(self, command: Command, new: New) -> Any:
        """Return the message of a command."""

    @abstractmethod
    def action(self, message: Any, names: Sequence[str], field: str) -> np.ndarray:
        """Return the action in a message, (A,) float64, in the order of `names`; a simulator reads it.

        Raises:
            ValueError: names the message's field, its value and what was expected.
        """

    def stamp_ns(self, message: Any) -> int:
        """Return the stamp of a message; 0 where it has none."""
        return stamp_ns(message.header.stamp) if self.stamped else 0

    def curve(self, message: object, names: Sequence[str]) -> Curve | None:
        """Return the curve of a trajectory, its times in s after the stamp; None where it is no trajectory.

        Raises:
            ValueError: names the message's field, its value and what was expected.
        """
        return None


class ActionSink(CommandSink):
    """Commands one position as goals of a ROS action; the robot is held by cancelling its goals."""

    @abstractmethod
    def fill(self, goal: Any, name: str, position: float) -> None:
        """Write a position, m or rad, of the entry `name` into an empty goal."""

    @abstractmethod
    def position(self, goal: Any, name: str) -> float:
        """Return the position of a goal; a simulator reads it.

        Raises:
            ValueError: names the goal's field, its value and what was expected.
        """


def set_stamp(message: Any, stamp_ns: int) -> None:
    """Write a time into the header of an empty message, which has the stamp 0."""
    if stamp_ns:
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, NANOSECONDS)


def doubles(values: np.ndarray) -> array[float]:
    """Return numbers as a list of floats for a message."""
    return array("d", np.asarray(values, dtype=np.float64).tobytes())


def checked(values: object, names: Sequence[str], where: str) -> np.ndarray:
    """Return finite numbers, one per name, (A,) float64.

    Raises:
        ValueError: there are fewer or more, or one is not finite.
    """
    action = np.asarray(values, dtype=np.float64)
    if action.shape != (len(names),):
        raise ValueError(f"{where}: {action.size} values, expected {len(names)}")
    if not np.isfinite(action).all():
        raise ValueError(f"{where}: {action.tolist()}, must be finite")
    return action


def order(given: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the index of each name among the given ones.

    Raises:
        ValueError: the names differ.
    """
    if sorted(given) != sorted(names):
        raise ValueError(f"joint_names: {list(given)}, must be {list(names)}")
    return [list(given).index(name) for name in names]

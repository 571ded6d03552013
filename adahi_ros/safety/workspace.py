# SPDX-License-Identifier: Apache-2.0
"""A box that the robot's tool must not leave. It has no ROS and no clock."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from adahi_ros.core.assets import asset
from adahi_ros.core.files import read_bytes
from adahi_ros.core.kinematics import Chain
from adahi_ros.core.schema import Listed, Text
from adahi_ros.safety.command_limits import CommandLimit, Judge
from adahi_ros.safety.entry_limits import Position
from adahi_ros.safety.urdf import urdf_text

Corner = Annotated[Listed[Position], Field(min_length=3, max_length=3)]


@dataclass(frozen=True)
class Workspace(CommandLimit):
    """A box, in m and in the frame of the link `base`, that the link `tip` must not leave.

    `urdf` is a file's path relative to the file of limits, or the name of a shipped URDF.
    """

    urdf: Text
    base: Text
    tip: Text
    low: Corner
    high: Corner

    def __post_init__(self) -> None:
        if not all(low < high for low, high in zip(self.low, self.high, strict=True)):
            raise ValueError(f"low: {list(self.low)}, must be below high, {list(self.high)}")
        if all(map(math.isinf, (*self.low, *self.high))):
            raise ValueError("low, high: all infinite, must limit one side at least")

    def judge(self, commanded: Mapping[str, str], folder: Path) -> Judge:
        """See `CommandLimit`: positions of all joints between the links must be commanded."""
        file = folder / os.path.expanduser(self.urdf)
        urdf = file if file.suffix else asset(f"config/urdf/{self.urdf}.urdf")
        chain = Chain(urdf_text(read_bytes(urdf)), self.base, self.tip)
        for joint in chain.joint_names:
            if commanded.get(joint) != "positions":
                raise ValueError(f"tip: {self.tip!r}, joint {joint} moves it: its position must be commanded")
        if max(*self.low, *(-high for high in self.high)) <= -chain.reach:
            raise ValueError(
                f"low, high: {list(self.low)}, {list(self.high)}, must limit a tool that reaches "
                f"{chain.reach:.2f} m, and it is never outside"
            )
        return Box(chain, tuple(commanded), np.array(self.low), np.array(self.high)).admits


class Box:
    """Judges commanded positions by the resulting tool position.

    Args:
        chain: of the robot, from the box's link to the tool.
        names: of the A commanded entries; all joints of the chain are among them.
        low: (3,) smallest coordinates, m.
        high: (3,) largest coordinates, m.
    """

    def __init__(self, chain: Chain, names: Sequence[str], low: np.ndarray, high: np.ndarray) -> None:
        self._chain = chain
        self._places = {name: tuple(names).index(name) for name in chain.joint_names}
        self._low, self._high = low, high

    def admits(self, before: np.ndarray, wanted: np.ndarray) -> bool:
        """Return whether the tool may go from one commanded position to the next.

        It may if it ends inside the box, or nearer to the box: a robot outside may return.

        Args:
            before: (A,) rad or m; NaN where unknown.
            wanted: (A,) rad or m.
        """
        outside = self._outside(wanted)
        return outside == 0.0 or outside < self._outside(before)  # false for NaN

    def _outside(self, positions: np.ndarray) -> float:
        """Return the tool's distance from the box in m; 0 inside, NaN where a joint is NaN."""
        pose = self._chain.pose({name: float(positions[place]) for name, place in self._places.items()})
        tool = pose[:3, 3]
        return float(np.linalg.norm(tool - np.clip(tool, self._low, self._high)))

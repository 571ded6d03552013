# SPDX-License-Identifier: Apache-2.0
"""A box that the robot's tool may not leave. It knows no ROS and no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from adahi_ros.core.assets import asset
from adahi_ros.core.files import read_bytes
from adahi_ros.core.kinematics import Chain
from adahi_ros.core.schema import Listed, Schema, Text, checked
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.safety.checks import Position
from adahi_ros.safety.limits import WORKSPACE, YAML_SUFFIXES
from adahi_ros.safety.urdf import urdf_text

Corner = Annotated[Listed[Position], Field(min_length=3, max_length=3)]


@dataclass(frozen=True)
class _Box(Schema):
    """What the file says."""

    urdf: Text
    base: Text
    tip: Text
    low: Corner
    high: Corner

    def __post_init__(self) -> None:
        if not all(low < high for low, high in zip(self.low, self.high, strict=True)):
            raise ValueError(f"low: {list(self.low)}, must be below high, {list(self.high)}")


class Workspace:
    """Judges commanded positions by where they would bring the tool.

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

        It may where it ends inside the box, or nearer to the box: a robot outside may return.

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


def load_workspace(path: Path, names: Sequence[str], fields: Sequence[str]) -> Workspace | None:
    """Read the box of a file of limits; None where it has none.

    Top level of our YAML, in m and in the frame of the link `base`:

        workspace: {urdf: FILE, base: LINK, tip: LINK, low: [X, Y, Z], high: [X, Y, Z]}

    FILE is a path relative to the YAML file, or the name of a shipped URDF.

    Args:
        path: of the limits.
        names: the A commanded entries.
        fields: (A,), what each entry is.

    Raises:
        FileNotFoundError: no such file.
        ValueError: names file, field, value and what was allowed.
    """
    path = Path(path)
    if path.suffix not in YAML_SUFFIXES:
        return None
    values = read_yaml(path)
    if not isinstance(values, Mapping) or WORKSPACE not in values:
        return None
    try:
        return _workspace(path.parent, values[WORKSPACE], dict(zip(names, fields, strict=True)))
    except ValueError as error:
        raise ValueError(f"{path}: {WORKSPACE}: {error}") from None


def _workspace(folder: Path, values: Any, field_of: Mapping[str, str]) -> Workspace:
    box: _Box = checked(_Box, values)
    urdf = folder / box.urdf if Path(box.urdf).suffix else asset(f"config/urdf/{box.urdf}.urdf")
    chain = Chain(urdf_text(read_bytes(urdf)), box.base, box.tip)
    for joint in chain.joint_names:
        if field_of.get(joint) != "positions":
            raise ValueError(f"tip: {box.tip!r}, joint {joint} moves it: its position must be commanded")
    return Workspace(chain, tuple(field_of), np.array(box.low), np.array(box.high))

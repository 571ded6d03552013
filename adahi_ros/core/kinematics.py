# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics of one chain of a URDF: the pose of a robot's tip."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np

TURNING = ("revolute", "continuous")
KINDS = ("fixed", *TURNING, "prismatic")


@dataclass(frozen=True)
class Joint:
    """One joint of a chain.

    Attributes:
        name: of the joint, or of the joint that it mimics.
        kind: one of `KINDS`.
        origin: (4, 4), from the parent link to the joint.
        axis: (3,), of length 1, in the joint's frame.
        multiplier, offset: of a mimicking joint.
    """

    name: str
    kind: str
    origin: np.ndarray
    axis: np.ndarray
    multiplier: float
    offset: float

    def transform(self, position: float) -> np.ndarray:
        """Return the pose of the child link in the parent link, (4, 4); `position` in rad or m."""
        moved, value = np.eye(4), self.multiplier * position + self.offset
        if self.kind in TURNING:
            moved[:3, :3] = _rotation(self.axis, value)
        else:
            moved[:3, 3] = self.axis * value
        return self.origin @ moved


class Chain:
    """The joints from one link of a URDF to one of its descendants.

    Args:
        urdf: the text of the robot description.
        base_link: frame of the poses.
        tip_link: link of the poses.

    Raises:
        ValueError: the text is no URDF, has no such links, or no such chain; the message names the argument.
    """

    def __init__(self, urdf: str, base_link: str, tip_link: str) -> None:
        try:
            robot = ElementTree.fromstring(urdf)
        except ElementTree.ParseError as error:
            raise ValueError(f"robot_description: no XML, {error}") from None
        links = [str(link.get("name")) for link in robot.findall("link")]
        for argument, link in (("base_link", base_link), ("tip_link", tip_link)):
            if link not in links:
                raise ValueError(f"{argument}: {link!r}, must be a link of the robot: {', '.join(links)}")
        above = {_attribute(joint, "child", "link"): joint for joint in robot.findall("joint")}
        chain: list[Joint] = []
        link = tip_link
        while link != base_link:
            if link not in above or len(chain) == len(links):
                raise ValueError(f"tip_link: {tip_link!r}, must hang on {base_link!r}; it hangs on {link!r}")
            chain.append(_joint(above[link]))
            link = _attribute(above[link], "parent", "link")
        self._joints = tuple(reversed(chain))
        self.joint_names = tuple(dict.fromkeys(joint.name for joint in self._joints if joint.kind != "fixed"))
        """Joints that move the tip, from base to tip."""
        lengths = [float(np.linalg.norm(joint.origin[:3, 3])) for joint in self._joints]
        slides = any(joint.kind == "prismatic" for joint in self._joints)
        self.reach = math.inf if slides else sum(lengths)
        """The tip is no further from the base, m; infinite where a joint slides."""

    def pose(self, positions: Mapping[str, float]) -> np.ndarray:
        """Return the pose of the tip in the base, (4, 4) float64.

        Args:
            positions: rad or m, by joint; all of `joint_names`, others are ignored.

        Raises:
            KeyError: a joint is missing.
        """
        pose = np.eye(4)
        for joint in self._joints:
            pose = pose @ joint.transform(0.0 if joint.kind == "fixed" else positions[joint.name])
        return pose


def _joint(element: ElementTree.Element) -> Joint:
    name, kind = str(element.get("name")), str(element.get("type"))
    if kind not in KINDS:
        raise ValueError(f"robot_description: joint {name} is {kind}, must be one of {', '.join(KINDS)}")
    origin = np.eye(4)
    origin[:3, 3] = _vector(element, "origin", "xyz", (0.0, 0.0, 0.0))
    for angle, axis in zip(_vector(element, "origin", "rpy", (0.0, 0.0, 0.0)), np.eye(3), strict=True):
        origin[:3, :3] = _rotation(axis, angle) @ origin[:3, :3]  # about fixed axes: roll, pitch, yaw
    axis = _vector(element, "axis", "xyz", (1.0, 0.0, 0.0))
    length = np.linalg.norm(axis)
    if kind != "fixed" and length == 0.0:
        raise ValueError(f"robot_description: axis of joint {name} is 0 0 0, must have a direction")
    mimic = element.find("mimic")
    return Joint(
        name=name if mimic is None else str(mimic.get("joint")),
        kind=kind,
        origin=origin,
        axis=axis / (length or 1.0),
        multiplier=_vector(element, "mimic", "multiplier", (1.0,)).item(),
        offset=_vector(element, "mimic", "offset", (0.0,)).item(),
    )


def _attribute(joint: ElementTree.Element, child: str, name: str) -> str:
    found = joint.find(child)
    value = None if found is None else found.get(name)
    if value is None:
        raise ValueError(f"robot_description: joint {joint.get('name')} has no {child} {name}")
    return value


def _vector(joint: ElementTree.Element, child: str, name: str, default: tuple[float, ...]) -> np.ndarray:
    found = joint.find(child)
    text = None if found is None else found.get(name)
    try:
        values = np.array(default if text is None else [float(each) for each in text.split()])
    except ValueError:
        values = np.empty(0)
    if values.shape != (len(default),) or not np.isfinite(values).all():
        where = f"{child} {name} of joint {joint.get('name')}"
        wanted = "a number" if len(default) == 1 else "three numbers"
        raise ValueError(f"robot_description: {where} is {text!r}, must be {wanted}")
    return values


def _rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    """Return the rotation about an axis of length 1 (Rodrigues), (3, 3)."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross

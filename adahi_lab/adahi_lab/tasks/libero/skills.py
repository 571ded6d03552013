# SPDX-License-Identifier: Apache-2.0
"""What a hand that remembers nothing does next: reach along its fingers, grip, carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adahi_lab.tasks.mujoco_picture import mujoco

OPEN, CLOSED = -1.0, 1.0
DOWN = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
"""The direction of a hand that points down; the columns are its axes."""


@dataclass(frozen=True)
class Wish:
    """What the hand is to do next.

    Attributes:
        place: (3,) m.
        gripper: `OPEN` or `CLOSED`.
        direction: (3, 3), its columns are the hand's axes.
    """

    place: np.ndarray
    gripper: float
    direction: np.ndarray


class Scene:
    """What an episode's observation says, by names."""

    def __init__(self, names: Sequence[str], joints: np.ndarray, state: np.ndarray) -> None:
        self._at = dict(zip(names, state, strict=True))
        self.opening = float(joints[7] - joints[8])
        self.hand = self.place("hand")
        self.direction = self._direction("hand")

    def place(self, body: str) -> np.ndarray:
        """Where a body is, (3,) m."""
        return np.array([self._at[f"{body}_{axis}_m"] for axis in "xyz"])

    def fixture(self, body: str) -> np.ndarray:
        """Where furniture stands, (2,) m."""
        return np.array([self._at[f"{body}_{axis}_m"] for axis in "xy"])

    def joint(self, name: str) -> float:
        """Where a drawer (m) or the knob (rad) is."""
        return float(self._at[name])

    def axis(self, body: str, which: str) -> np.ndarray:
        """An axis of a body, (3,)."""
        return np.array([self._at[f"{body}_{which}_axis_{axis}"] for axis in "xyz"])

    def _direction(self, body: str) -> np.ndarray:
        first, last = self.axis(body, "x"), self.axis(body, "z")
        return np.stack([first, np.cross(last, first), last], axis=1)


def turned(about: tuple[float, float, float], direction: np.ndarray = DOWN) -> np.ndarray:
    """Return a direction (3, 3) turned about an axis times an angle (rad)."""
    quaternion, matrix = np.empty(4), np.empty(9)
    angle = max(float(np.linalg.norm(about)), 1e-9)
    mujoco.mju_axisAngle2Quat(quaternion, np.array(about) / angle, angle)
    mujoco.mju_quat2Mat(matrix, quaternion)
    wanted: np.ndarray = matrix.reshape(3, 3) @ direction
    return wanted


def rotation_to(current: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the axis times the sine of the angle from one direction to another, (3,)."""
    axis: np.ndarray = 0.5 * np.cross(current.T, wanted.T).sum(axis=0)
    return axis


def approached(scene: Scene, place: np.ndarray, direction: np.ndarray, back: float) -> np.ndarray:
    """Return where to go to reach a place along the fingers, (3,): from `back` (m) before it, by a funnel."""
    along = direction[:, 2]
    offset = scene.hand - place
    behind = -float(offset @ along)
    beside = offset + behind * along
    off = float(np.linalg.norm(beside))
    wrong = float(np.linalg.norm(rotation_to(scene.direction, direction)))
    wanted = min(back, 4.0 * max(0.0, off - 0.008) + 0.5 * max(0.0, wrong - 0.1))
    short = np.clip((wanted - behind) / 0.04, 0.0, 1.0)  # too near to move sideways
    goal: np.ndarray = place + short * beside - wanted * along
    return goal


@dataclass(frozen=True)
class Grip:
    """How a thing is held.

    Attributes:
        offset: (3,) m, where the fingers meet, from the thing's place.
        width: between the fingers that hold it, at most, m.
        back: how far before it the hand approaches, m.
        direction: of the hand, from downwards: an axis times an angle, rad.
    """

    offset: tuple[float, float, float]
    width: float
    back: float = 0.12
    direction: tuple[float, float, float] = (0.0, 0.0, 0.0)


def carried(scene: Scene, thing: str, grip: Grip, goal: np.ndarray, lift: float) -> Wish:
    """Pick up a thing and bring it to a place (3,), by its own place; `lift` (m) above both on the way."""
    place = scene.place(thing)
    at = place + grip.offset
    off = scene.hand - at
    near = np.hypot(off[0], off[1]) < 0.015 and abs(off[2]) < 0.015
    direction = turned(grip.direction)
    if not near:
        return Wish(approached(scene, at, direction, grip.back), OPEN, direction)
    if scene.opening > grip.width:
        return Wish(at, CLOSED, direction)
    beside = place - goal
    far = float(np.hypot(beside[0], beside[1]))
    height = goal[2] + min(lift, 4.0 * max(0.0, far - 0.01))
    low = np.clip((height - place[2]) / 0.03, 0.0, 1.0)
    way = np.append(low * place[:2] + (1.0 - low) * goal[:2], height)
    return Wish(scene.hand + way - place, CLOSED, direction)

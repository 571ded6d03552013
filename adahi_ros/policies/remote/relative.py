# SPDX-License-Identifier: Apache-2.0
"""Makes plans absolute if their actions are relative to the state of the request.

    relative:
    - {actions: [positions.joint1, positions.joint2], state: observation.state}      # added to its first two
    - actions: [pose.x, pose.y, pose.z, pose.rx, pose.ry, pose.rz]
      state: observation.pose
      rotation: rotation_vector                                      # of the last three; the others are in m
      frame: tool

The state is the newest observation that the policy saw. So a plan says the same whenever its reply arrives,
and a robot that moved meanwhile does not shift it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from adahi_ros.core.signature import Feature, Observations
from adahi_ros.policies.remote.target_fields import RelativeEntry

POSITION = 3  # numbers of a position before a rotation


def _unit(quaternions: np.ndarray) -> np.ndarray:
    """Return quaternions (..., 4) of length 1; NaN for one of length 0, which is no rotation."""
    lengths = np.linalg.norm(quaternions, axis=-1, keepdims=True)
    return quaternions / np.where(lengths > 0.0, lengths, np.nan)


def _from_vectors(vectors: np.ndarray) -> np.ndarray:
    """Return the quaternions (..., 4) of rotation vectors (..., 3) in rad."""
    half = np.linalg.norm(vectors, axis=-1, keepdims=True) / 2
    return np.concatenate([vectors * np.sinc(half / np.pi) / 2, np.cos(half)], axis=-1)


def _to_vectors(quaternions: np.ndarray) -> np.ndarray:
    """Return the rotation vectors (..., 3) of quaternions, at most pi long."""
    quaternions = np.where(quaternions[..., 3:] < 0.0, -quaternions, quaternions)
    length = np.linalg.norm(quaternions[..., :3], axis=-1, keepdims=True)
    angle = 2 * np.arctan2(length, quaternions[..., 3:])
    return quaternions[..., :3] * np.where(length > 0.0, angle / np.where(length > 0.0, length, 1.0), 2.0)


def _near_quaternions(quaternions: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return of each quaternion and its negative, the same rotation, the one nearer to another."""
    return np.where(np.sum(quaternions * before, axis=-1, keepdims=True) < 0.0, -quaternions, quaternions)


def _near_vectors(vectors: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return of the rotation vectors of a rotation, which differ by turns, the one nearest to another."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    axis = vectors / np.where(length > 0.0, length, 1.0)
    turns = np.round((np.sum(before * axis, axis=-1, keepdims=True) - length) / (2 * np.pi))
    return vectors + 2 * np.pi * turns * axis


@dataclass(frozen=True)
class _Rotation:
    """A representation of rotations by numbers.

    Attributes:
        size: how many.
        read: returns quaternions (..., 4), x y z w, of length 1.
        write: returns the numbers of quaternions.
        near: returns the numbers of the same rotations that are nearest to others.
    """

    size: int
    read: Callable[[np.ndarray], np.ndarray]
    write: Callable[[np.ndarray], np.ndarray]
    near: Callable[[np.ndarray, np.ndarray], np.ndarray]


ROTATIONS: Mapping[str, _Rotation] = MappingProxyType(
    {
        "quaternion": _Rotation(4, _unit, lambda quaternions: quaternions, _near_quaternions),
        "rotation_vector": _Rotation(3, _from_vectors, _to_vectors, _near_vectors),
    }
)


def _product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the quaternions of rotations by `right`, then by `left`."""
    (a, s), (b, t) = ((each[..., :3], each[..., 3:]) for each in (left, right))
    scalar = s * t - np.sum(a * b, axis=-1, keepdims=True)
    return np.concatenate([s * b + t * a + np.cross(a, b), scalar], axis=-1)


def _rotated(vectors: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Return vectors (..., 3) rotated by quaternions."""
    twice = 2 * np.cross(by[..., :3], vectors)
    return vectors + by[..., 3:] * twice + np.cross(by[..., :3], twice)


class Relative:
    """Makes the relative actions of a policy absolute.

    Args:
        entries: of the file.
        action_names: of the signature.
        features: that a request has.

    Raises:
        ValueError: names the field, the value and what is allowed.
    """

    def __init__(
        self, entries: Sequence[RelativeEntry], action_names: Sequence[str], features: Sequence[Feature]
    ) -> None:
        self._entries = [(entry, _columns(where, entry, action_names)) for where, entry in _named(entries)]
        sizes = {feature.name: feature.size for feature in features}
        for where, entry in _named(entries):
            _check_state(where, entry, sizes)
        used = [column for _, columns in self._entries for column in columns]
        for column in used:
            if used.count(column) > 1:
                raise ValueError(f"relative: {action_names[column]!r}, must be in one entry only")

    def absolute(self, plans: np.ndarray, observations: Observations) -> np.ndarray:
        """Return absolute plans (B, T, A) float32.

        Args:
            plans: (B, T, A), with the entries relative to the state.
            observations: that they were made from. A state with a quaternion of length 0 gives NaN.
        """
        made = plans.astype(np.float64)
        for entry, columns in self._entries:
            begin = entry.at
            state = observations.features[entry.state][:, -1, begin : begin + _state_size(entry)]
            made[..., columns] = _made(
                entry, plans[..., columns].astype(np.float64), state.astype(np.float64)
            )
        with np.errstate(over="ignore"):
            return made.astype(np.float32)


def _named(entries: Sequence[RelativeEntry]) -> list[tuple[str, RelativeEntry]]:
    return [(f"relative[{index}]", entry) for index, entry in enumerate(entries)]


def _columns(where: str, entry: RelativeEntry, action_names: Sequence[str]) -> list[int]:
    for name in entry.actions:
        if name not in action_names:
            there_are = ", ".join(action_names) or "none"
            raise ValueError(f"{where}.actions: {name!r}, must be one of action_names: {there_are}")
    if entry.rotation is None:
        if entry.frame != "base" or entry.state_rotation is not None:
            raise ValueError(f"{where}.rotation: missing, must be there with frame or state_rotation")
    elif len(entry.actions) - ROTATIONS[entry.rotation].size not in (0, POSITION):
        size = ROTATIONS[entry.rotation].size
        raise ValueError(
            f"{where}.actions: {len(entry.actions)} names, must be {size} of a {entry.rotation}, or "
            f"{POSITION + size} with a position before it"
        )
    return [action_names.index(name) for name in entry.actions]


def _state_size(entry: RelativeEntry) -> int:
    if entry.rotation is None or entry.state_rotation is None:
        return len(entry.actions)
    return len(entry.actions) - ROTATIONS[entry.rotation].size + ROTATIONS[entry.state_rotation].size


def _check_state(where: str, entry: RelativeEntry, sizes: Mapping[str, int]) -> None:
    if entry.state not in sizes:
        raise ValueError(f"{where}.state: {entry.state!r}, must be one of state: {', '.join(sizes)}")
    needed = entry.at + _state_size(entry)
    if needed > sizes[entry.state]:
        raise ValueError(
            f"{where}.at: {entry.at}, must leave {_state_size(entry)} of the {sizes[entry.state]} numbers of "
            f"{entry.state}"
        )


def _made(entry: RelativeEntry, relative: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Return the absolute numbers (B, T, N) of one entry, of a state (B, M)."""
    if entry.rotation is None:
        return state[:, None] + (relative.cumsum(axis=1) if entry.chained else relative)
    kind = ROTATIONS[entry.rotation]
    at = relative.shape[-1] - kind.size  # 0, or 3 after a position
    moved, turned = relative[..., :at], kind.read(relative[..., at:])
    position, rotation = state[:, :at], ROTATIONS[entry.state_rotation or entry.rotation].read(state[:, at:])
    near = kind.write(rotation)
    if entry.state_rotation in (None, entry.rotation):
        near = state[:, at:]
    made = np.empty_like(relative)
    for step in range(relative.shape[1]):
        now = moved[:, step], turned[:, step]
        placed, headed = _composed(position, rotation, *now, entry.frame == "tool")
        near = kind.near(kind.write(headed), near)
        made[:, step] = np.concatenate([placed, near], axis=-1)
        if entry.chained:
            position, rotation = placed, _unit(headed)
    return made


def _composed(
    position: np.ndarray, rotation: np.ndarray, moved: np.ndarray, turned: np.ndarray, tool: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return a pose after a motion in the frame of the tool or the base; positions may have no numbers."""
    if not tool:
        return position + moved, _product(turned, rotation)
    if moved.shape[-1]:
        moved = _rotated(moved, rotation)
    return position + moved, _product(rotation, turned)

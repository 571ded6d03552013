# SPDX-License-Identifier: Apache-2.0
"""What must hold for a task to succeed: LIBERO's predicates, for the state that was stepped last."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from adahi_lab.tasks.mujoco_picture import mujoco

OPEN_BELOW_M = -0.14  # a drawer's joint
ON_FROM_RAD, OFF_BELOW_RAD = 0.5, 0.0  # the stove's knob
CENTRED_M = 0.03  # things upon one another
LOWER_M, HIGHER_M = 0.005, 0.10  # things on a place: from its upper side
DEEPER_M = 0.01  # things in a place: below it
KINDS = ("on", "on_place", "in_place", "open", "turned_on", "turned_off")
JOINTS = ("open", "turned_on", "turned_off")


@dataclass(frozen=True)
class Condition:
    """One predicate.

    Attributes:
        kind: `on` (a thing on another one), `on_place`, `in_place`, `open` (a joint of a drawer), `turned_on`
            or `turned_off` (a joint of a knob).
        thing: body of the thing; a joint for the last three kinds.
        other: body of the other thing; site of the place.
        geoms, other_geoms: which touch one another, by names; without `other_geoms` they need not touch.
    """

    kind: str
    thing: str
    other: str = ""
    geoms: list[str] = field(default_factory=list)
    other_geoms: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind: {self.kind!r}, must be one of {', '.join(KINDS)}")


class Judge:
    """Whether a condition holds.

    Args:
        condition: which.
        model: the physics.
    """

    def __init__(self, condition: Condition, model: mujoco.MjModel) -> None:
        self._condition = condition
        self._these = _marked(model, condition.geoms)
        self._those = _marked(model, condition.other_geoms)
        if condition.kind in JOINTS:
            self._joint = int(model.joint(condition.thing).qposadr[0])
        else:
            self._thing = model.body(condition.thing).id
        if condition.kind == "on":
            self._other = model.body(condition.other).id
        elif condition.kind.endswith("place"):
            self._other = model.site(condition.other).id
            self._size = model.site_size[self._other].copy()

    def holds(self, data: mujoco.MjData) -> bool:
        """Whether it holds in the state that `data` has the contacts of."""
        kind = self._condition.kind
        if kind == "open":
            return bool(data.qpos[self._joint] < OPEN_BELOW_M)
        if kind == "turned_on":
            return bool(data.qpos[self._joint] >= ON_FROM_RAD)
        if kind == "turned_off":
            return bool(data.qpos[self._joint] < OFF_BELOW_RAD)
        place = data.xpos[self._thing]
        if kind == "on":
            offset = place - data.xpos[self._other]
            centred = offset[0] ** 2 + offset[1] ** 2 < CENTRED_M**2
            return bool(offset[2] >= 0.0 and centred and self._touch(data))
        offset, axes = place - data.site_xpos[self._other], data.site_xmat[self._other].reshape(3, 3)
        if kind == "in_place":
            reach = np.abs(axes @ self._size)
            below = offset > -reach - (0.0, 0.0, DEEPER_M)
            return bool(np.all(below & (offset < reach)))
        shown = axes @ offset  # as the library has it: not the inverse
        above = self._size[2] - LOWER_M < shown[2] < self._size[2] + HIGHER_M
        return bool(above and np.all(np.abs(shown[:2]) < self._size[:2]) and self._touch(data))

    def _touch(self, data: mujoco.MjData) -> bool:
        if not self._those.any():
            return True
        one, two = data.contact.geom.T
        return bool(np.any(self._these[one] & self._those[two] | self._these[two] & self._those[one]))


def _marked(model: mujoco.MjModel, names: list[str]) -> np.ndarray:
    """Return which geoms have these names, (G,) bool."""
    marked = np.zeros(model.ngeom, dtype=bool)
    marked[[model.geom(name).id for name in names]] = True
    return marked

# SPDX-License-Identifier: Apache-2.0
"""Where a hand takes hold of what stands on LIBERO's table, and how far off it is, for experts and policies.

The hand moves within 0.5 m, but a grip must fit within millimetres. Scaled by its spread, a millimetre of a
place is below what a network resolves. So policies also read `nearness`, which has its resolution at the
grip.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

NEAR_M = 0.02  # where `nearness` begins to saturate
CABINET, STOVE = "wooden_cabinet_1", "flat_stove_1"
THINGS_M = {  # where fingers meet, from the thing's place
    "akita_black_bowl_1": (0.0, 0.047, 0.034),  # along its wall
    "cream_cheese_1": (0.0, 0.0, 0.005),
    "wine_bottle_1": (0.0, 0.0, 0.125),
    "plate_1": (0.0, 0.0, 0.014),  # pressed onto, not gripped
}
CABINET_M = 0.905
HANDLES_M = {"top": 0.184, "middle": 0.1105}  # above the cabinet's place
HANDLE_OFFSET_M = (0.0025, 0.1015)  # from the cabinet's place; a drawer's joint is negative where open
KNOB_M = (0.01, 0.0, 0.945)  # from the stove's place, and above the ground


def handle(cabinet: np.ndarray, drawer: str, joint_m: float) -> np.ndarray:
    """Return the middle of a drawer's handle, (3,) m.

    Args:
        cabinet: (2,), where it stands, m.
        drawer: one of `HANDLES_M`.
        joint_m: the drawer's joint, negative where open.
    """
    x, y = cabinet + HANDLE_OFFSET_M
    return np.array([x, y - joint_m, CABINET_M + HANDLES_M[drawer]])


def knob(stove: np.ndarray) -> np.ndarray:
    """Return the middle of the knob of a stove at (2,), (3,) m."""
    return np.append(stove, 0.0) + KNOB_M


class GripPoints:
    """The points that a scene has, of seven: four on things, two handles, the knob.

    Args:
        names: of what is observed, see `world.state_names`.

    Attributes:
        names: of what `nearness` returns.
    """

    def __init__(self, names: Sequence[str]) -> None:
        at = {name: number for number, name in enumerate(names)}
        self._hand = _columns(at, "hand", "xyz")
        self._things = [
            (_columns(at, thing, "xyz"), np.array(offset))
            for thing, offset in THINGS_M.items()
            if f"{thing}_x_m" in at
        ]
        self._drawers = [
            (drawer, _columns(at, CABINET, "xy"), at[f"{CABINET}_{drawer}_level_m"])
            for drawer in HANDLES_M
            if f"{CABINET}_{drawer}_level_m" in at
        ]
        self._stove = _columns(at, STOVE, "xy") if f"{STOVE}_x_m" in at else None
        points = [thing for thing in THINGS_M if f"{thing}_x_m" in at]
        points += [f"{CABINET}_{drawer}_handle" for drawer, *_ in self._drawers]
        points += [f"{STOVE}_knob"] * (self._stove is not None)
        self.names = tuple(f"{point}_nearness_{axis}" for point in points for axis in "xyz")

    def nearness(self, state: np.ndarray) -> np.ndarray:
        """Return tanh((point - hand) / 2 cm) of each point in x, y and z, (3 P,), without a unit.

        Args:
            state: (S,), in the order of the names.
        """
        points = [state[columns] + offset for columns, offset in self._things]
        points += [handle(state[columns], drawer, state[joint]) for drawer, columns, joint in self._drawers]
        if self._stove is not None:
            points.append(knob(state[self._stove]))
        away: np.ndarray = np.reshape(points, (-1, 3)) - state[self._hand]
        return np.tanh(away / NEAR_M).ravel()


def _columns(at: dict[str, int], body: str, axes: str) -> list[int]:
    """Return where the place of a body is."""
    return [at[f"{body}_{axis}_m"] for axis in axes]

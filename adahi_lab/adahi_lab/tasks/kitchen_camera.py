# SPDX-License-Identifier: Apache-2.0
"""Images of a small camera in kitchens, from the library's viewpoint.

Without a graphics card, triangles determine the time of a frame. So curves have few triangles, and the arm is
drawn as its convex collision hulls.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from adahi_lab.tasks.kitchen import SUBTASKS, Kitchen
from adahi_lab.tasks.kitchen_world import ROBOT_JOINTS, KitchenWorld, load_world, position_names
from adahi_lab.tasks.mujoco_picture import camera_at, mujoco, photographed
from adahi_lab.tasks.offscreen import make_renderer

ROWS = COLUMNS = 96
FINE_ARM, COARSE_ARM = 0, 3  # groups of the model's shapes
QUALITY = {"offsamples": 0, "numslices": 10, "numstacks": 5, "numquads": 1}
PLACE = 3  # of a pose, the entries before the quaternion


class KitchenView:
    """Renders kitchens. Implements `adahi_lab.tasks.camera.View`."""

    image_size = (ROWS, COLUMNS)

    def __init__(self) -> None:
        self._world = load_world(SUBTASKS)
        moved = [entry for indices in self._world.goal_indices.values() for entry in indices[:PLACE]]
        self._shown = [*range(ROBOT_JOINTS), *moved]
        names = position_names(self._world.model)
        self.label_names = tuple(names[entry] for entry in self._shown)
        self._renderer: _SmallRenderer | None = None

    def labels(self, task: Kitchen) -> np.ndarray:
        """(E, L) float64, true positions of the arm and the objects, rad and m."""
        labels: np.ndarray = task.true_positions[:, self._shown]
        return labels

    def photograph(self, task: Any, rows: np.ndarray) -> np.ndarray:
        """Return the camera's images of the episodes in these rows (N,): (N, 96, 96, 3) uint8.

        Raises:
            RuntimeError: there is no OpenGL to draw with.
        """
        if self._renderer is None:  # most kitchens are never drawn
            self._renderer = _SmallRenderer(self._world)
        return np.stack([self._renderer.draw(positions) for positions in task.true_positions[rows]])


class _SmallRenderer:
    def __init__(self, world: KitchenWorld) -> None:
        model = copy.copy(world.model)
        for name, value in QUALITY.items():
            setattr(model.vis.quality, name, value)
        self._model, self._data = model, mujoco.MjData(model)
        self._camera, self._shapes = camera_at(world.camera), mujoco.MjvOption()
        self._shapes.geomgroup[FINE_ARM], self._shapes.geomgroup[COARSE_ARM] = 0, 1
        self._renderer: mujoco.Renderer = make_renderer(model, ROWS, COLUMNS, "kitchen")

    def draw(self, positions: np.ndarray) -> np.ndarray:
        self._data.qpos[:] = positions
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        return photographed(self._renderer, self._data, self._camera, self._shapes)

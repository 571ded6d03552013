# SPDX-License-Identifier: Apache-2.0
"""A picture of one kitchen for people, with the progress of its sub-tasks."""

from __future__ import annotations

import copy

import numpy as np

from adahi_lab.tasks.kitchen_world import KitchenWorld
from adahi_lab.tasks.mujoco_picture import (
    BAD,
    FAINT,
    GOOD,
    HEIGHT,
    WIDTH,
    camera_at,
    captioned,
    mujoco,
    photographed,
)
from adahi_lab.tasks.offscreen import make_renderer


class KitchenPainter:
    """Draws kitchens with MuJoCo's renderer, through the library's camera.

    Args:
        world: the kitchen.

    Raises:
        RuntimeError: there is no OpenGL to draw with.
    """

    def __init__(self, world: KitchenWorld) -> None:
        self._world = world
        model = copy.copy(world.model)
        model.vis.quality.offsamples = 0
        self._model, self._data = model, mujoco.MjData(model)
        self._camera = camera_at(world.camera)
        self._renderer = make_renderer(model, HEIGHT, WIDTH, "kitchen")

    def draw(self, positions: np.ndarray, step: int, completed: dict[str, bool], failed: bool) -> np.ndarray:
        """Return the picture, (480, 640, 3) uint8.

        Args:
            positions: (30,) of all joints, in the model's order.
            step: control steps taken.
            completed: which sub-tasks have been completed, by name.
            failed: the physics diverged.
        """
        self._data.qpos[:] = positions
        mujoco.mj_forward(self._model, self._data)
        picture = photographed(self._renderer, self._data, self._camera)
        seconds = f"step {step} of {self._world.max_steps}   {step * self._world.period_s:.2f} s"
        lines = [(name, GOOD if done else FAINT, done) for name, done in completed.items()]
        diverged = [("the simulation diverged", BAD, None)] if failed else []
        return captioned(picture, 196, "Franka kitchen", seconds, [*lines, *diverged], 22)

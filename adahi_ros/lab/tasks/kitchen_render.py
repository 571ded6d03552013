# SPDX-License-Identifier: Apache-2.0
"""A picture of one kitchen for people, with what is done and what is not."""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass

import mujoco
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from adahi_ros.lab.tasks.kitchen_world import KitchenWorld
from adahi_ros.lab.tasks.offscreen import make_renderer

WIDTH, HEIGHT = 640, 480
INK, FAINT, GOOD, BAD, PAPER = "#273142", "#6b7686", "#1f8a5b", "#c0262d", "#ffffff"
LINE = 20  # px
# Without a graphics card, these take a second or more.
COSTLY = (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION)


@dataclass(frozen=True)
class KitchenScene:
    """What is in the picture.

    Attributes:
        positions: (30,) of all joints, in the model's order.
        step: control steps taken.
        completed: which sub-tasks have been completed, by name.
        failed: the physics diverged.
    """

    positions: np.ndarray
    step: int
    completed: dict[str, bool]
    failed: bool


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
        self._camera = mujoco.MjvCamera()
        for name, value in world.camera.items():
            setattr(self._camera, name, value)
        self._renderer = make_renderer(model, HEIGHT, WIDTH, "kitchen")

    def draw(self, scene: KitchenScene) -> np.ndarray:
        """Return the picture, (480, 640, 3) uint8."""
        self._data.qpos[:] = scene.positions
        mujoco.mj_forward(self._model, self._data)
        self._renderer.update_scene(self._data, self._camera)
        for flag in COSTLY:
            self._renderer.scene.flags[flag] = 0
        image = Image.fromarray(self._renderer.render())
        self._caption(ImageDraw.Draw(image, "RGBA"), scene)
        return np.asarray(image).copy()

    def _caption(self, draw: ImageDraw.ImageDraw, scene: KitchenScene) -> None:
        lines = len(scene.completed) + 2 + scene.failed
        draw.rounded_rectangle((10, 10, 196, 22 + lines * LINE), 8, fill=(*rgb(PAPER), 215))
        draw.text((20, 16), "Franka kitchen", INK, font(16))
        seconds = scene.step * self._world.period_s
        step = f"step {scene.step} of {self._world.max_steps}   {seconds:.2f} s"
        draw.text((20, 17 + LINE), step, FAINT, font(13))
        for row, (name, completed) in enumerate(scene.completed.items(), 2):
            top = 17 + row * LINE
            box = (21, top + 3, 31, top + 13)
            draw.ellipse(box, fill=GOOD if completed else None, outline=GOOD if completed else FAINT)
            draw.text((40, top), name, GOOD if completed else FAINT, font(13))
        if scene.failed:
            draw.text((20, 17 + (lines - 1) * LINE), "the simulation diverged", BAD, font(13))


def rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue


@functools.lru_cache(maxsize=4)
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)

# SPDX-License-Identifier: Apache-2.0
"""A picture of one of Meta-World's tables for people, with what was asked for."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from PIL import Image, ImageDraw

from adahi_ros.lab.tasks.kitchen_render import BAD, COSTLY, FAINT, GOOD, INK, LINE, PAPER, font, rgb
from adahi_ros.lab.tasks.metaworld_world import World
from adahi_ros.lab.tasks.offscreen import make_renderer

WIDTH, HEIGHT = 640, 480
CAMERA = {"azimuth": 145.0, "elevation": -28.0, "distance": 1.5, "lookat": (0.0, 0.68, 0.12)}
MARK_RADIUS_M = 0.02
MARK_COLOUR = (0.1, 0.8, 0.2, 0.8)


@dataclass(frozen=True)
class Caption:
    """What is written into the picture.

    Attributes:
        sentence: what was asked for.
        mark: (3,) m, drawn where there is one.
        step: control steps taken.
        max_steps: an episode's length at most.
        period_s: a control step's length.
        success, failed: of the episode.
    """

    sentence: str
    mark: np.ndarray | None
    step: int
    max_steps: int
    period_s: float
    success: bool
    failed: bool


class MetaWorldPainter:
    """Draws tables with MuJoCo's renderer, one for each scene that it has drawn."""

    def __init__(self) -> None:
        self._renderers: dict[str, mujoco.Renderer] = {}
        self._camera, self._options = mujoco.MjvCamera(), mujoco.MjvOption()
        for name, value in CAMERA.items():
            setattr(self._camera, name, value)
        self._options.sitegroup[:] = 0  # the models' own marks are somewhere else

    def draw(self, world: World, scene: str, told: Caption) -> np.ndarray:
        """Return the picture of the episode that the world of a scene was loaded with, (480, 640, 3) uint8.

        Raises:
            RuntimeError: there is no OpenGL to draw with.
        """
        renderer = self._renderer(world, scene)
        mujoco.mj_forward(world.model, world.data)
        renderer.update_scene(world.data, self._camera, self._options)
        for flag in COSTLY:
            renderer.scene.flags[flag] = 0
        if told.mark is not None:
            _add_ball(renderer.scene, told.mark)
        image = Image.fromarray(renderer.render())
        _caption(ImageDraw.Draw(image, "RGBA"), told)
        return np.asarray(image).copy()

    def _renderer(self, world: World, name: str) -> mujoco.Renderer:
        if name not in self._renderers:
            self._renderers[name] = make_renderer(world.model, HEIGHT, WIDTH, "metaworld")
        return self._renderers[name]


def _add_ball(scene: mujoco.MjvScene, place: np.ndarray) -> None:
    mujoco.mjv_initGeom(
        scene.geoms[scene.ngeom],
        mujoco.mjtGeom.mjGEOM_SPHERE,
        np.full(3, MARK_RADIUS_M),
        place,
        np.eye(3).ravel(),
        np.array(MARK_COLOUR, dtype=np.float32),
    )
    scene.ngeom += 1


def _caption(draw: ImageDraw.ImageDraw, told: Caption) -> None:
    outcome = [("done", GOOD)] if told.success else [("something else was done", BAD)] if told.failed else []
    seconds = f"step {told.step} of {told.max_steps}   {told.step * told.period_s:.2f} s"
    lines = [(seconds, FAINT), *outcome]
    draw.rounded_rectangle((10, 10, 290, 24 + LINE * (1 + len(lines))), 8, fill=(*rgb(PAPER), 215))
    draw.text((20, 16), told.sentence, INK, font(16))
    for row, (text, colour) in enumerate(lines, 1):
        draw.text((20, 17 + row * LINE), text, colour, font(13))

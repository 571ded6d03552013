# SPDX-License-Identifier: Apache-2.0
"""A picture of one of Meta-World's tables for people, with the instruction."""

from __future__ import annotations

import numpy as np

from adahi_lab.tasks.metaworld_original import OriginalWorld
from adahi_lab.tasks.metaworld_world import SceneWorld
from adahi_lab.tasks.mujoco_picture import (
    BAD,
    GOOD,
    HEIGHT,
    WIDTH,
    camera_at,
    captioned,
    mujoco,
    photographed,
)
from adahi_lab.tasks.offscreen import make_renderer

CAMERA = {"azimuth": 145.0, "elevation": -28.0, "distance": 1.5, "lookat": (0.0, 0.68, 0.12)}
MARK_RADIUS_M = 0.02
MARK_COLOUR = (0.1, 0.8, 0.2, 0.8)


class MetaWorldPainter:
    """Draws tables with MuJoCo's renderer, one for each scene that it has drawn."""

    def __init__(self) -> None:
        self._renderers: dict[str, mujoco.Renderer] = {}
        self._camera, self._options = camera_at(CAMERA), mujoco.MjvOption()
        self._options.sitegroup[:] = 0  # hides the models' own marks

    def draw(
        self,
        world: SceneWorld | OriginalWorld,
        scene: str,
        mark: np.ndarray,
        sentence: str,
        step: str,
        success: bool,
        failed: bool,
    ) -> np.ndarray:
        """Return the picture of the episode that the world of a scene was loaded with, (480, 640, 3) uint8.

        Args:
            world: of the scene.
            scene: its name.
            mark: (3,) m, NaN where there is none to draw.
            sentence: the instruction.
            step: its number.
            success: of the episode.
            failed: likewise.

        Raises:
            RuntimeError: there is no OpenGL to draw with.
        """
        if scene not in self._renderers:
            self._renderers[scene] = make_renderer(world.model, HEIGHT, WIDTH, "metaworld")
        mujoco.mj_forward(world.model, world.data)

        def add_mark(drawn: mujoco.MjvScene) -> None:
            if not np.isnan(mark).any():
                _add_ball(drawn, mark)

        picture = photographed(self._renderers[scene], world.data, self._camera, self._options, add_mark)
        outcome = [("done", GOOD, None)] if success else []
        if failed and not success:
            outcome = [("something else was done", BAD, None)]
        return captioned(picture, 290, sentence, step, outcome, 24)


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

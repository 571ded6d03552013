# SPDX-License-Identifier: Apache-2.0
"""A picture of LIBERO's table for people: the shapes that touch, because the scene has no others."""

from __future__ import annotations

import functools

import numpy as np

from adahi_lab.tasks.libero.goal import LiberoGoal
from adahi_lab.tasks.libero.scene_files import load_scene
from adahi_lab.tasks.mujoco_picture import (
    GOOD,
    HEIGHT,
    WIDTH,
    camera_at,
    captioned,
    mujoco,
    photographed,
)
from adahi_lab.tasks.offscreen import make_renderer

CAMERA = {"azimuth": 150.0, "elevation": -30.0, "distance": 1.6, "lookat": (-0.15, 0.0, 1.0)}


def draw(task: LiberoGoal, index: int) -> np.ndarray:
    """Return the picture of one episode, (480, 640, 3) uint8.

    Raises:
        IndexError: no such episode.
        RuntimeError: there is no OpenGL to draw with.
    """
    kept, step = task.kept[index], int(task.steps[index])
    renderer, options = _renderer(task.suite)
    task.world.load(kept)
    mujoco.mj_forward(task.world.model, task.world.data)
    picture = photographed(renderer, task.world.data, camera_at(CAMERA), options)
    when = f"step {step} of {task.spec.max_steps}   {step / task.spec.control_rate_hz:.2f} s"
    done = [("done", GOOD, None)] if task.success[index] else []
    return captioned(picture, 340, task.sentences[index], when, done, 24)


@functools.cache
def _renderer(suite: str) -> tuple[mujoco.Renderer, mujoco.MjvOption]:
    """Return a renderer of a suite's scene, and what it shows: shapes that touch, no marks."""
    options = mujoco.MjvOption()
    options.sitegroup[:] = 0
    options.geomgroup[0] = 1
    return make_renderer(load_scene(suite=suite).model, HEIGHT, WIDTH, suite), options

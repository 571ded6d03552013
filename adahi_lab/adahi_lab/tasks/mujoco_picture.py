# SPDX-License-Identifier: Apache-2.0
"""Cameras in MuJoCo's worlds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from adahi_lab.tasks.offscreen import choose_renderer

choose_renderer()

import mujoco as mujoco  # noqa: E402 (others take it from here, where it draws)

# Without a graphics card, these take a second or more.
COSTLY = (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION)


def camera_at(place: Mapping[str, object]) -> mujoco.MjvCamera:
    """Return a camera with some attributes, such as its azimuth."""
    camera = mujoco.MjvCamera()
    for name, value in place.items():
        setattr(camera, name, value)
    return camera


def photographed(
    renderer: mujoco.Renderer,
    data: mujoco.MjData,
    camera: mujoco.MjvCamera,
    options: mujoco.MjvOption,
) -> np.ndarray:
    """Return a camera's image without costly light effects, (H, W, 3) uint8.

    Args:
        renderer: of the model.
        data: of the model, with all that depends on its positions.
        camera: viewpoint.
        options: of the visualisation.
    """
    renderer.update_scene(data, camera, options)
    for flag in COSTLY:
        renderer.scene.flags[flag] = 0
    picture: np.ndarray = renderer.render()
    return picture

# SPDX-License-Identifier: Apache-2.0
"""Shared by pictures of MuJoCo's worlds: a camera and a caption."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from adahi_lab.tasks.offscreen import choose_renderer

choose_renderer()

import mujoco as mujoco  # noqa: E402 (others take it from here, where it draws)

WIDTH, HEIGHT = 640, 480
INK, FAINT, GOOD, BAD, PAPER = "#273142", "#6b7686", "#1f8a5b", "#c0262d", (255, 255, 255, 215)
LINE = 20  # px
Line = tuple[str, str, bool | None]
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
    options: mujoco.MjvOption | None = None,
    add: Callable[[mujoco.MjvScene], None] = lambda scene: None,
) -> np.ndarray:
    """Return a camera's image without costly light effects, (H, W, 3) uint8.

    Args:
        renderer: of the model.
        data: of the model, with all that depends on its positions.
        camera: viewpoint.
        options: of the visualisation; None for MuJoCo's.
        add: called with the scene, to add objects that are not in the model.
    """
    renderer.update_scene(data, camera, options)
    for flag in COSTLY:
        renderer.scene.flags[flag] = 0
    add(renderer.scene)
    picture: np.ndarray = renderer.render()
    return picture


def captioned(
    picture: np.ndarray,
    width: int,
    title: str,
    step: str,
    lines: Sequence[Line],
    spare: int,
) -> np.ndarray:
    """Return a picture (H, W, 3) uint8 with a caption.

    Args:
        picture: is not changed.
        width: of the caption, px.
        title: in large letters.
        step: in small ones below.
        lines: below that, with their colours; True and False put a full and an empty circle before the text.
        spare: rows below the lines, px.
    """
    image = Image.fromarray(picture)
    draw = ImageDraw.Draw(image, "RGBA")
    draw.rounded_rectangle((10, 10, width, spare + LINE * (2 + len(lines))), 8, fill=PAPER)
    draw.text((20, 16), title, INK, _font(16))
    draw.text((20, 17 + LINE), step, FAINT, _font(13))
    for row, (text, colour, mark) in enumerate(lines, 2):
        top = 17 + row * LINE
        if mark is not None:
            draw.ellipse((21, top + 3, 31, top + 13), fill=colour if mark else None, outline=colour)
        draw.text((20 if mark is None else 40, top), text, colour, _font(13))
    return np.asarray(image).copy()


@functools.lru_cache(maxsize=4)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)

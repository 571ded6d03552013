# SPDX-License-Identifier: Apache-2.0
"""Pictures of MuJoCo's worlds without a display."""

from __future__ import annotations

import atexit
import ctypes.util
import os
import sys
import weakref
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mujoco


def choose_renderer() -> None:
    """Select MuJoCo's OpenGL backend unless MUJOCO_GL does; call it before importing MuJoCo."""
    # Loaded after Mesa's LLVM, that of triton, which comes with torch for CUDA, ends the process.
    with suppress(ImportError):
        import_module("triton._C.libtriton")
    if sys.platform.startswith("linux"):
        # MuJoCo reads this on import, which fails without EGL if it is set to that.
        os.environ.setdefault("MUJOCO_GL", "egl" if ctypes.util.find_library("EGL") else "disable")


def make_renderer(model: mujoco.MjModel, rows: int, columns: int, name: str) -> mujoco.Renderer:
    """Return a renderer of pictures of so many rows and columns.

    Args:
        model: gets room for such pictures.
        rows: of a picture.
        columns: of a picture.
        name: of the world, for the error.

    Raises:
        RuntimeError: there is no OpenGL to draw with.
    """
    import mujoco

    model.vis.global_.offwidth, model.vis.global_.offheight = columns, rows
    try:
        renderer = mujoco.Renderer(model, rows, columns)
    # Errors vary: no library, no device, or none of the selected kind.
    except (AttributeError, ImportError, RuntimeError, mujoco.FatalError) as error:
        raise RuntimeError(
            f"{name}: cannot draw, there is no OpenGL here ({error}); install libegl1, or set MUJOCO_GL to "
            "egl, osmesa or glfw, whichever there is"
        ) from error
    _closed_at_exit().add(renderer)
    return renderer


@cache
def _closed_at_exit() -> weakref.WeakSet[mujoco.Renderer]:
    """Return the renderers to close when Python ends.

    MuJoCo ends EGL then, by a function that it registers with its first renderer. What is closed later
    prints an error each. Functions run in reverse order, so this one must be registered after it.
    """
    renderers: weakref.WeakSet[mujoco.Renderer] = weakref.WeakSet()

    def close() -> None:
        for each in list(renderers):
            each.close()

    atexit.register(close)
    return renderers

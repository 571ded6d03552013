# SPDX-License-Identifier: Apache-2.0
"""Pictures of MuJoCo's worlds where there is no display."""

from __future__ import annotations

import ctypes.util
import os
import sys


def choose_renderer() -> None:
    """Tell MuJoCo how to draw, unless MUJOCO_GL says it; to be called before MuJoCo is imported."""
    if sys.platform.startswith("linux"):
        # MuJoCo reads this when it is imported, and that fails if it says EGL and there is none.
        os.environ.setdefault("MUJOCO_GL", "egl" if ctypes.util.find_library("EGL") else "disable")

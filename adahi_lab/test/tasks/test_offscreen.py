"""Renderers without a display."""

from __future__ import annotations

import subprocess
import sys
from ctypes.util import find_library
from importlib.util import find_spec

import pytest

ENDING = """
import atexit
from adahi_lab.tasks.offscreen import choose_renderer, make_renderer

choose_renderer()
import mujoco

made = []
atexit.register(lambda: print(made[0]._gl_context))  # runs after what is registered later
made.append(make_renderer(mujoco.MjModel.from_xml_string("<mujoco/>"), 8, 8, "nothing"))
"""


@pytest.mark.skipif(find_library("EGL") is None, reason="needs libegl1")
def test_renderers_are_closed_before_opengl_ends() -> None:
    run = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stdout, run.stderr) == (0, "None\n", "")


DRAWING = """
from adahi_lab.tasks.offscreen import choose_renderer, make_renderer

choose_renderer()
import mujoco

make_renderer(mujoco.MjModel.from_xml_string("<mujoco/>"), 8, 8, "nothing").render()
import triton._C.libtriton
"""


@pytest.mark.skipif(
    find_library("EGL") is None or find_spec("triton") is None, reason="needs libegl1, torch for CUDA"
)
def test_a_process_that_draws_can_load_triton_later() -> None:
    run = subprocess.run([sys.executable, "-c", DRAWING], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr

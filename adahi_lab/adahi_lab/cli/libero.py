# SPDX-License-Identifier: Apache-2.0
"""`adahi lab libero`: LIBERO's scene, converted once."""

from __future__ import annotations

from typing import Annotated

import typer

from adahi_lab.cli.output import job_bar
from adahi_ros.cli.terminal import say


def convert(
    suite: Annotated[str, typer.Option(help="libero_goal, or another one for research.")] = "libero_goal",
) -> None:
    """Convert LIBERO-Goal's scene for the task libero_goal, once; needs requirements/libero.txt.

    The result stays in this user's cache, because the assets have licences of their own.
    """
    from adahi_lab.tasks.libero.convert import convert as convert_scene
    from adahi_lab.tasks.libero.scene_files import SUITES, scene_folder

    if suite not in SUITES:
        raise ValueError(f"suite: {suite!r}, must be one of {', '.join(SUITES)}")
    folder = scene_folder(suite)
    with job_bar("tasks", 10) as update:
        convert_scene(folder, lambda done: update(completed=done), suite)
    size = sum(path.stat().st_size for path in folder.iterdir())
    say(f"scene: {folder}, {size / 2**20:.1f} MiB")

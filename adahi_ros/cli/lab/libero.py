# SPDX-License-Identifier: Apache-2.0
"""`adahi lab libero`: LIBERO's scene, converted once."""

from __future__ import annotations

from adahi_ros.cli.terminal import job_bar, say


def convert() -> None:
    """Convert LIBERO-Goal's scene for the task libero_goal, once; needs requirements/libero.txt.

    The result stays in this user's cache, because the assets have licences of their own.
    """
    from adahi_ros.lab.tasks.libero.convert import convert as convert_scene
    from adahi_ros.lab.tasks.libero.scene_files import scene_folder

    folder = scene_folder()
    with job_bar("tasks", 10) as update:
        convert_scene(folder, lambda done: update(completed=done))
    size = sum(path.stat().st_size for path in folder.iterdir())
    say(f"scene: {folder}, {size / 2**20:.1f} MiB")

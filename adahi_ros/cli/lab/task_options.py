# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that name a simulated task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adahi_ros.cli.options import folder_named
from adahi_ros.lab.parallel import cores

TASKS_THERE_ARE = (  # those shipped; to ask the registry would load what help does not need
    "The task: ball, inverted_pendulum, kitchen, swarm, with an instruction ball_instructed, "
    "kitchen_instructed, metaworld, metaworld_10, metaworld_50, swarm_instructed, by a camera ball_camera, "
    "kitchen_camera, for the target alone ball_seen, or a YAML file of another"
)


def known_task(name: str) -> str:
    """Return the name of a task, or raise the registry's error before anything is loaded."""
    from adahi_ros.lab.tasks import make

    make(name)
    return name


def file_name(task: str) -> str:
    """Return what the files of a task are called; the task may be given as a file itself."""
    from adahi_ros.lab.tasks import make

    return make(task).spec.name


def folder_of(task: str, checkpoints: Path | None) -> Path:
    """Return the folder of a task's checkpoints.

    Raises:
        ValueError: nobody gave one, and none is shipped.
    """
    return checkpoints if checkpoints is not None else folder_named(file_name(task))


TaskName = Annotated[
    str,
    typer.Argument(help=f"{TASKS_THERE_ARE}.", callback=known_task),
]
Workers = Annotated[
    int, typer.Option(min=1, default_factory=cores, show_default="all cores", help="Processes to work in.")
]

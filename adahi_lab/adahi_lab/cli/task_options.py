# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that name a simulated task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from adahi_lab.cli import options
from adahi_lab.cli.output import job_bar
from adahi_lab.parallel import cores

if TYPE_CHECKING:
    from adahi_lab.datasets.trajectories import Trajectories
    from adahi_lab.tasks.demonstrations import Demonstrations

TASKS_THERE_ARE = (  # the shipped ones; the registry would load more than the help needs
    "The task: ball, inverted_pendulum, kitchen, swarm, with an instruction ball_instructed, "
    "kitchen_instructed, libero_goal, metaworld, metaworld_10, metaworld_50, swarm_instructed, with a camera "
    "ball_camera, kitchen_camera, with a camera for the target only ball_seen, or a YAML file of another"
)


def known_task(name: str) -> str:
    """Return the name of a task, or raise the registry's error before anything is loaded."""
    from adahi_lab.tasks import make

    make(name)
    return name


def file_name(task: str) -> str:
    """Return the file name of a task; the task may be given as a file."""
    from adahi_lab.tasks import make

    return make(task).spec.name


def folder_of(task: str, checkpoints: Path | None) -> Path:
    """Return the folder of a task's checkpoints.

    Raises:
        ValueError: none is given, and none is shipped.
    """
    return checkpoints if checkpoints is not None else options.folder_named(file_name(task))


def demonstrations_of(
    task: str,
    file: Path | None,
    dataset: Path | None,
    episodes: int,
    seed: int,
    action_noise: float,
    workers: int,
    rests: float = 0.0,
) -> Trajectories:
    """Return demonstrations from a dataset or a file, or record them now.

    Args:
        task: as `make` takes it; with a dataset, its task.
        file: of `adahi data simulate`; None for none.
        dataset: folder of `adahi data from-bag`; None for none.
        episodes: to record where neither is given.
        seed: of these.
        action_noise: of these, as `collect_parallel` takes it.
        workers: processes that record.
        rests: of these, as `collect_parallel` takes it.

    Raises:
        ValueError: both are given, or demonstrations are of another task.
    """
    from adahi_lab.datasets.trajectories import Trajectories

    if dataset is not None:
        options.left_out(f"data ({dataset}) is given", demos=file)
        return options.recorded(dataset, task)
    if file is None:
        return recorded_now(task, episodes, seed, action_noise, workers, rests).trajectories
    data = Trajectories.load(file)
    if data.task != file_name(task):
        raise ValueError(f"demos: of task {data.task!r}, must be of {file_name(task)!r}")
    return data


def recorded_now(
    task: str, episodes: int, seed: int, action_noise: float, workers: int, rests: float = 0.0
) -> Demonstrations:
    """Record demonstrations, behind a progress bar; arguments and errors as `collect_parallel`."""
    from adahi_lab.tasks.demonstrations import collect_parallel

    with job_bar(f"{task}: episodes", episodes) as update:
        return collect_parallel(
            *(task, episodes, seed, action_noise, workers),
            lambda done, of: update(completed=done),
            rests,
        )


TaskName = Annotated[str, Argument(help=f"{TASKS_THERE_ARE}.", callback=known_task)]
Workers = Annotated[
    int, Option(min=1, default_factory=cores, show_default="all cores", help="Processes to work in.")
]
DemonstrationsFile = Annotated[
    Path | None, Option("--demos", help="File of 'adahi data simulate'. Default: record as the recipe says.")
]
Dataset = Annotated[
    Path | None, Option("--data", help="Folder of 'adahi data from-bag', instead of demonstrations.")
]

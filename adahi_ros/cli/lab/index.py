# SPDX-License-Identifier: Apache-2.0
"""`adahi index`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adahi_ros.cli.lab.task_options import (
    TASKS_THERE_ARE,
    Dataset,
    Workers,
    demonstrations_of,
    file_name,
    known_task,
)
from adahi_ros.cli.options import JsonFile, Overwrite, Seed, finite, replaceable
from adahi_ros.cli.terminal import command_line, say, write_json


def index(
    task: Annotated[str, typer.Argument(help=f"{TASKS_THERE_ARE}; with --data, what that is of.")],
    workers: Workers,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write retrieval.* into. Default: checkpoints/TASK.")
    ] = None,
    demonstrations: Annotated[
        Path | None, typer.Option("--demos", help="File of 'adahi demos'. Default: record --episodes.")
    ] = None,
    dataset: Dataset = None,
    episodes: Annotated[int, typer.Option(min=8, help="To record, with the noise of 'adahi demos'.")] = 400,
    horizon: Annotated[int, typer.Option(min=1, max=1024, help="Actions of what is retrieved.")] = 8,
    neighbours: Annotated[
        int, typer.Option(min=2, max=64, help="Of different episodes, that are asked whether they agree.")
    ] = 5,
    most_mib: Annotated[
        float,
        typer.Option(
            min=0.01, max=1024.0, callback=finite, help="Size at most; whole episodes are left out."
        ),
    ] = 8.0,
    overwrite: Overwrite = False,
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Make an index of demonstrations or bags, for the proposers 'retrieval' and 'mixture'."""
    from adahi_ros.lab.evaluation.loaded_policies import RETRIEVAL
    from adahi_ros.lab.tasks.demonstrations import NOISE, told_to_robots
    from adahi_ros.lab.training.retrieval_index import make_index, save_index

    name = task if dataset is not None else file_name(known_task(task))
    folder = out if out is not None else Path("checkpoints") / name
    replaceable("--out", folder / f"{RETRIEVAL}.json", overwrite)
    data = demonstrations_of(task, demonstrations, dataset, episodes, seed, NOISE, workers)
    data = data.without_images() if dataset is not None else told_to_robots(data, task)
    made, figures = make_index(data, seed, neighbours, int(most_mib * 2**20))
    sizes = {
        "observation_dim": data.observations.shape[1],
        "goal_dim": data.goals.shape[1],
        "horizon": horizon,
        "neighbours": neighbours,
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_index(folder, RETRIEVAL, made, sizes, {"command": command_line(), "seed": seed, **figures})
    write_json(json_file, {"task": name, "seed": seed, **figures})
    say(
        f"{folder / RETRIEVAL}: {figures['steps']} steps of {figures['episodes']} episodes; without its own "
        f"episode, what is retrieved is {figures['error']:.2f} action scales off, the mean action "
        f"{figures['error_of_mean']:.2f}"
    )
    say(
        "rank correlation with that error: what neighbours say "
        f"{figures['rank_correlation_of_doubt']:.2f}, fast and straight motion "
        f"{figures['rank_correlation_of_kinematics']:.2f}"
    )

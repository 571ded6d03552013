# SPDX-License-Identifier: Apache-2.0
"""`adahi lab index`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from adahi_lab.cli import options, task_options
from adahi_lab.cli.output import write_json
from adahi_ros.cli.options import Overwrite, number, replaceable
from adahi_ros.cli.terminal import command_line, say


def index(
    task: Annotated[str, Argument(help=f"{task_options.TASKS_THERE_ARE}; with --data, the dataset's task.")],
    workers: task_options.Workers,
    out: Annotated[
        Path | None, Option(help="Folder to write retrieval.* into. Default: checkpoints/TASK.")
    ] = None,
    demonstrations: Annotated[
        Path | None, Option("--demos", help="File of 'adahi data simulate'. Default: record --episodes.")
    ] = None,
    dataset: task_options.Dataset = None,
    episodes: Annotated[int, Option(min=8, help="Episodes to record, as 'adahi data simulate'.")] = 400,
    most_mib: Annotated[float, number("Largest size; whole episodes are left out.", 0.01, 1024.0)] = 8.0,
    overwrite: Overwrite = False,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Index demonstrations or bags for the proposer 'tool_path'."""
    from adahi_lab.papers.heisd.retrieval import KIND
    from adahi_lab.papers.heisd.retrieval_index import make_index, save_index
    from adahi_lab.tasks.demonstrations import NOISE, seen_by_robots

    name = task if dataset is not None else task_options.file_name(task_options.known_task(task))
    folder = out if out is not None else Path("checkpoints") / name
    replaceable("--out", folder / f"{KIND}.json", overwrite)
    data = task_options.demonstrations_of(task, demonstrations, dataset, episodes, seed, NOISE, workers)
    data = data.without_images() if dataset is not None else seen_by_robots(data, task)
    made = make_index(data, seed, int(most_mib * 2**20))
    sizes = {"observation_dim": data.observations.shape[1], "goal_dim": data.goals.shape[1]}
    figures = {"episodes": len(set(made.last.tolist())), "steps": len(made.last)}
    folder.mkdir(parents=True, exist_ok=True)
    save_index(folder, KIND, made, sizes, {"command": command_line(), "seed": seed, **figures})
    write_json(json_file, {"task": name, "seed": seed, **figures})
    say(f"{folder / KIND}: {figures['steps']} steps of {figures['episodes']} episodes")

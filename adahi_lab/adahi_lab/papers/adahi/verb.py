# SPDX-License-Identifier: Apache-2.0
"""`adahi train offsets`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from adahi_lab.cli import learning, options, task_options
from adahi_lab.cli.output import progress, write_json
from adahi_ros.cli.options import Overwrite, replaceable
from adahi_ros.cli.terminal import command_line, console, say


def train_offsets(
    task: task_options.TaskName,
    workers: task_options.Workers,
    recipe: Annotated[
        Path | None, Option(help="Recipe of the draft. Default: config/recipes/TASK.yaml.")
    ] = None,
    demonstrations: task_options.DemonstrationsFile = None,
    dataset: task_options.Dataset = None,
    rollouts: Annotated[
        int, Option(min=0, help="Episodes of the method 'hybrid' to learn from, beside the demonstrations.")
    ] = 0,
    rounds: Annotated[
        int,
        Option(
            min=1,
            help="Trainings; each after the first learns also from so many episodes of 'hybrid_codes' with "
            "the draft before (DAgger).",
        ),
    ] = 1,
    hidden: Annotated[int, Option(min=1, help="Units of each of the network's two layers.")] = 64,
    steps: Annotated[int, Option(min=1, help="Training steps.")] = 4000,
    checkpoints: options.Checkpoints = None,
    seed: options.Seed = 0,
    overwrite: Overwrite = False,
    json_file: options.JsonFile = None,
) -> None:
    """Train the draft 'draft_codes', with offsets with which a robot decodes the target's codes."""
    import torch

    from adahi_lab.datasets.trajectories import Trajectories
    from adahi_lab.evaluation.evaluate import Comparison
    from adahi_lab.evaluation.loaded_policies import DRAFT_CODES
    from adahi_lab.methods.methods import METHODS
    from adahi_lab.papers.adahi.offsets import train_offsets
    from adahi_lab.training.recorded_rollouts import record_rollouts

    torch.set_num_threads(1)
    name = task if dataset is not None else task_options.file_name(task_options.known_task(task))
    folder = task_options.folder_of(task, checkpoints)
    replaceable("--checkpoints", folder / f"{DRAFT_CODES}.json", overwrite)
    if rollouts:
        options.left_out("rollouts are asked for", data=dataset)
    elif rounds > 1:
        raise ValueError(f"--rounds: {rounds}, needs --rollouts for the rounds after the first")
    beside: list[Trajectories] = []
    for number in range(rounds):
        if rollouts:
            method = METHODS["hybrid_codes" if number else "hybrid"]
            with console.status(f"recording {method.label}"):
                compared = Comparison.of_folder(task, folder, seed + number)
                beside.append(record_rollouts(compared, method, rollouts, workers)[0])
        with console.status("recording demonstrations"):
            lessons = learning.old_lessons(name, recipe, demonstrations, dataset, workers, folder, beside)
        with progress() as bar:
            found = train_offsets(folder, lessons, hidden, steps, seed, command_line(), bar)
    write_json(json_file, {"task": task, "seed": seed, **found})
    say(
        f"distance from the target's offsets {found['distance']:.3f} action scales, {found['without']:.3f} "
        f"without; {found['parameters']:,} weights in all"
    )
    say(f"policy: {(folder / DRAFT_CODES).resolve()}")

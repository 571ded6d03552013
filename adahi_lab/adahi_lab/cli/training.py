# SPDX-License-Identifier: Apache-2.0
"""`adahi train policy` and `adahi export`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from adahi_lab.cli import learning, options, task_options
from adahi_lab.cli.output import progress, write_json
from adahi_ros.cli.fields import with_fields
from adahi_ros.cli.options import Overwrite, each_bag, is_shipped, replaceable
from adahi_ros.cli.terminal import command_line, say
from adahi_ros.core.assets import asset, shipped
from adahi_ros.core.registry import Registry

EXPORTS: Registry[Callable[[Path, Path], None]] = Registry("adahi_lab.exports", {})
"""Write a network in another way, from its file for ONNX Runtime; by the name of the backend."""

FOR_CORRECTIONS = [
    *(each.name for kind in (learning.CorrectedRuns, learning.Learning) for each in fields(kind)),
    "person_weight",
]


@with_fields
def train(
    context: typer.Context,
    task: Annotated[str, Argument(help=f"{task_options.TASKS_THERE_ARE}; with --data, the dataset's task.")],
    workers: task_options.Workers,
    out: Annotated[Path | None, Option(help="Folder to write. Default: checkpoints/TASK.")] = None,
    recipe: Annotated[Path | None, Option(help="Training recipe. Default: config/recipes/TASK.yaml.")] = None,
    demonstrations: task_options.DemonstrationsFile = None,
    dataset: task_options.Dataset = None,
    only: Annotated[
        str | None, Option(help="Train only these policies, comma-separated, on the existing tokenizer.")
    ] = None,
    seed: Annotated[int | None, Option(min=0, help="Replaces every model's seed of the recipe.")] = None,
    seed_offset: Annotated[
        int, Option(min=0, help="Added to every seed of the recipe, including that of the demonstrations.")
    ] = 0,
    overwrite: Overwrite = False,
    json_file: options.JsonFile = None,
    corrections: Annotated[
        list[Path] | None,
        Option(
            "--from-corrections",
            callback=each_bag,
            help="Bags of runs: train the draft further on the target's recorded replies, and on the "
            "actions of a person who took over.",
        ),
    ] = None,
    *,
    runs: learning.CorrectedRuns,
    how: learning.Learning,
    person_weight: learning.PersonWeight = 4,
) -> None:
    """Train tokenizer, draft and target. A stopped run continues.

    --from-corrections trains only the draft further; the options after it apply only to that.
    """
    from adahi_lab.datasets.trajectories import Trajectories
    from adahi_lab.reporting.training_figure import draw_losses
    from adahi_lab.training.recipes import load_recipe
    from adahi_lab.training.train import train_recipe

    if dataset is not None:
        options.left_out(f"data ({dataset}) is given", demos=demonstrations)
    if corrections:
        options.left_out("--from-corrections is given", only=only, seed_offset=seed_offset or None)
        name = (
            task
            if dataset is not None or runs.contract is not None
            else task_options.file_name(task_options.known_task(task))
        )
        out = out if out is not None else Path("checkpoints") / name
        replaceable("--out", out / "draft.json", overwrite)
        old = partial(learning.old_lessons, name, recipe, demonstrations, dataset, workers)
        learns = how.config(person_weight), how.most, seed or 0
        write_json(json_file, learning.learn_from_bags(corrections, name, old, out, runs, *learns))
        return
    for option in FOR_CORRECTIONS:
        source = context.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            options.left_out("--from-corrections is not given", **{option: context.params[option]})
    data = options.recorded(dataset, task) if dataset is not None else None
    if demonstrations is not None:
        data = Trajectories.load(demonstrations)
    name = task if dataset is not None else task_options.file_name(task_options.known_task(task))
    out = out if out is not None else Path("checkpoints") / name
    plan = load_recipe(options.recipe_file(recipe, name)).moved(seed_offset)
    chosen = [policy.strip() for policy in only.split(",")] if only is not None else None
    made = [*(["tokenizer"] if plan.tokenizer else []), *plan.policies, *plan.taught]
    for model in chosen if chosen is not None else made:
        replaceable("--out", out / f"{model}.json", overwrite)
    say(f"checkpoints: {out.resolve()}")
    with progress() as bar:
        trained = train_recipe(
            task, plan, out, command_line(), bar, data=data, only=chosen, seed=seed, workers=workers
        )
    for model, figures in trained.figures["models"].items():
        say(
            f"{model}: {figures['parameters']:,} weights, loss {figures['loss']:.4g}, "
            f"{figures['seconds']:.0f} s"
        )
    write_json(json_file, trained.figures)
    draw_losses(trained.losses, out / "losses.png")
    say(f"{out}: trained; loss curves in {out / 'losses.png'}")
    if shipped(f"checkpoints/{name}") and not is_shipped(out / "tokenizer.json"):
        say(f"other verbs take these policies with --checkpoints {out}, else {asset(f'checkpoints/{name}')}")


def export(
    task: task_options.TaskName,
    checkpoints: options.Checkpoints = None,
    overwrite: Overwrite = False,
    int8: Annotated[bool, Option("--int8", help="Write NAME.int8.onnx, too, for the backend int8.")] = False,
) -> None:
    """Write NAME.onnx beside each policy, for robots without torch."""
    from adahi_ros.policies.networks.onnx_export import export as write_onnx
    from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint

    folder = task_options.folder_of(task, checkpoints)
    for name in ("draft", "target"):
        checkpoint = load_checkpoint(folder / name)
        path = replaceable("--checkpoints", checkpoint.weights.with_suffix(".onnx"), overwrite)
        write_onnx(checkpoint, path)
        say(f"{path}: {path.stat().st_size / 1e3:.0f} kB")
        if int8:
            light = checkpoint.weights.with_suffix(".int8.onnx")
            EXPORTS["int8"](path, replaceable("--checkpoints", light, overwrite))
            say(f"{light}: {light.stat().st_size / 1e3:.0f} kB")

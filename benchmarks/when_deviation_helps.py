# SPDX-License-Identifier: Apache-2.0
"""When action deviation stops helping: success against transmission rate for other drafts of one task.

    .venv/bin/python benchmarks/when_deviation_helps.py [TASK] [--episodes N] [--out FOLDER]

    shipped           the draft and target as they are
    cooled            the same, the draft samples at temperature 0.3
    better draft      the draft trained nine times as long
    sampled offsets   draft and target with their offsets trained at sampled codes, as VQ-BeT's official
                      code does, instead of at those of the demonstrated action

What has to be trained is, on the shipped tokenizer and the recipe's demonstrations, and kept in FOLDER.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from adahi_ros.cli.terminal import progress
from adahi_ros.core.assets import asset
from adahi_ros.gates.parameter_file import load_calibration
from adahi_ros.lab.evaluation.episodes import evaluation_episodes
from adahi_ros.lab.evaluation.evaluate import Comparison
from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles
from adahi_ros.lab.evaluation.sweep import SWEPT, Point, sweep
from adahi_ros.lab.methods.method_names import COOL
from adahi_ros.lab.methods.methods import METHODS
from adahi_ros.lab.parallel import cores
from adahi_ros.lab.reporting.tradeoff_figure import draw_sweeps
from adahi_ros.lab.training.recipes import Recipe, load_recipe
from adahi_ros.lab.training.train import train_recipe

LONGER = 9


def better_draft(recipe: Recipe) -> Recipe:
    """Train the draft longer."""
    draft = recipe.policies["draft"]
    longer = replace(draft, fit=replace(draft.fit, steps=LONGER * draft.fit.steps))
    return replace(recipe, policies={"draft": longer})


def sampled_offsets(recipe: Recipe) -> Recipe:
    """Train all offsets at sampled codes."""
    policies = {
        name: replace(model, fit=replace(model.fit, offset_codes="sampled"))
        for name, model in recipe.policies.items()
    }
    return replace(recipe, policies=policies)


def trained(task: str, recipe: Recipe, folder: Path) -> Path:
    """Return a folder with the shipped policies, those of a recipe replaced."""
    if not (folder / "done").is_file():
        shutil.copytree(asset(f"checkpoints/{task}"), folder, dirs_exist_ok=True)
        with progress() as bar:
            train_recipe(
                task,
                recipe,
                folder,
                "when_deviation_helps.py",
                bar,
                None,
                list(recipe.policies),
                None,
                cores(),
            )
        (folder / "done").touch()
    return folder


def main(
    task: Annotated[str, typer.Argument(help="The task, such as 'ball'.")] = "ball",
    episodes: Annotated[int, typer.Option(min=1, help="Of every point.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random draw.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("results/when-deviation-helps"),
) -> None:
    """Sweep every gate over every draft."""
    calibration = load_calibration(asset(f"config/{task}.yaml"))
    recipe = load_recipe(asset(f"config/recipes/{task}.yaml"))
    shipped = asset(f"checkpoints/{task}")
    variants = {
        "shipped": (shipped, 1.0),
        "cooled": (shipped, COOL),
        "better draft": (trained(task, better_draft(recipe), out / f"{task}-better"), 1.0),
        "sampled offsets": (trained(task, sampled_offsets(recipe), out / f"{task}-sampled"), 1.0),
    }
    found: dict[str, list[Point]] = {}
    for name, (folder, temperature) in variants.items():
        files = PolicyFiles(folder, "onnxruntime")
        sampling = replace(calibration, draft_temperature=temperature)
        with progress() as bar:
            job = bar.add_task(f"{name}: episodes", total=None, note="")
            found[name] = sweep(
                Comparison(task, files, sampling, seed),
                evaluation_episodes(episodes),
                cores(),
                fixed=("draft",),
                on_done=lambda method, done: bar.advance(job, done),  # noqa: B023
            )
    for name, points in found.items():
        table = Table(title=f"{task}, {name}: success at the transmission rate, {episodes} episodes")
        table.add_column("method")
        rows = {method: [p.figures for p in points if p.method == method] for method in ("draft", *SWEPT)}
        for nominal in range(len(rows["adahi"])):
            table.add_column(f"{rows['random'][nominal]['transmission_rate']:.2f}", justify="right")
        for method, figures in rows.items():
            table.add_row(METHODS[method].label, *(f"{each['success_rate']:.3f}" for each in figures))
        Console().print(table)
    draw_sweeps(found, out / f"{task}.png")
    written = {name: [asdict(point) for point in points] for name, points in found.items()}
    (out / f"{task}.json").write_text(json.dumps(written, indent=2) + "\n")
    Console().print(f"picture and figures: {out / task}.png, .json")


if __name__ == "__main__":
    typer.run(main)

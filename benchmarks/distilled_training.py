# SPDX-License-Identifier: Apache-2.0
"""Tests whether a network on the robot succeeds alone after longer training.

    .venv/bin/python benchmarks/distilled_training.py [TASK] [--rounds N] [--episodes N] [--json FILE]

Trains by `distilled` of the task's recipe, in rounds of its own rollouts. After each round it prints the
success alone in evaluation episodes, with rollouts and steps so far.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from adahi_ros.core.assets import asset
from adahi_ros.core.trajectories import Trajectories
from adahi_ros.gates.parameter_file import Calibration, load_calibration
from adahi_ros.lab.evaluation.episodes import evaluation_episodes
from adahi_ros.lab.evaluation.loaded_policies import Bench, Policies, PolicyFiles, load_distilled
from adahi_ros.lab.evaluation.metrics import wilson_interval
from adahi_ros.lab.methods.methods import METHODS
from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.lab.tasks import goal_is_for_target, make
from adahi_ros.lab.tasks.demonstrations import collect_parallel
from adahi_ros.lab.training.fitting import Run
from adahi_ros.lab.training.recipes import DISTILLED, CorrectorRecipe, load_recipe
from adahi_ros.lab.training.train_corrector import train_in_simulation


def alone(
    task: str, policies: Policies, calibration: Calibration, folder: Path, seed: int, count: int
) -> dict[str, Any]:
    """Return the success rate of the checkpoint in a folder, alone, in so many evaluation episodes."""
    bench = Bench(task, replace(policies, distilled=load_distilled(folder, "onnxruntime")), calibration)
    world = make(task)
    METHODS[DISTILLED].run(bench, world, seed, evaluation_episodes(count))
    successes = int(world.success.sum())
    return {"success_rate": successes / count, "success_ci95": list(wilson_interval(successes, count))}


def curve(
    task: str,
    policies: Policies,
    calibration: Calibration,
    recipe: CorrectorRecipe,
    data: Trajectories,
    seed: int,
    count: int,
) -> list[dict[str, Any]]:
    """Train by a recipe; return the results of each round.

    Args:
        task: what `make` takes.
        policies: with a target that plans, which is the teacher.
        calibration: of the bench.
        recipe: how to train.
        data: demonstrations, for units.
        seed: of the evaluation.
        count: evaluation episodes.
    """
    assert policies.plans is not None
    teacher, found = policies.plans, []
    with TemporaryDirectory() as name:
        folder = Path(name)

        def measure(rounds: int) -> None:
            found.append(
                {
                    "rounds": rounds,
                    "episodes": rounds * recipe.episodes,
                    "steps": rounds * recipe.fit.steps,
                    **alone(task, policies, calibration, folder, seed, count),
                }
            )

        train_in_simulation(
            task,
            teacher,
            data,
            recipe,
            folder,
            Run(recipe.seed),
            lambda losses, parameters: {},
            name=DISTILLED,
            on_round=measure,
        )
    return found


def main(
    task: Annotated[str, typer.Argument(help="One with a target that plans.")] = "ball_instructed",
    rounds: Annotated[int | None, typer.Option(min=1, help="Default: the recipe's.")] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Of the evaluation, after each round.")] = 200,
    demos: Annotated[int, typer.Option(min=2, help="Of the expert, for units of what it reads.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Of the evaluation.")] = 11,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
) -> None:
    """Print success after each round of training."""
    torch.set_num_threads(1)
    whole = load_recipe(asset(f"config/recipes/{task}-plans.yaml"))
    if whole.distilled is None:
        raise ValueError(f"task: {task!r}, must have a recipe with a part 'distilled'")
    recipe = whole.distilled if rounds is None else replace(whole.distilled, rounds=rounds)
    requested = whole.demonstrations
    data = collect_parallel(task, demos, requested.seed, requested.action_noise, 1).trajectories
    found = curve(
        task,
        PolicyFiles(asset(f"checkpoints/{task}"), "onnxruntime").load(),
        load_calibration(asset(f"config/{task}.yaml")),
        recipe,
        data.without_goals() if goal_is_for_target(task) else data,
        seed,
        episodes,
    )
    table = narrow_table(
        f"{task}, alone, {episodes} episodes, seed {seed}",
        ["rounds"],
        ["episodes", "steps", "success", "95 %"],
    )
    for each in found:
        low, high = each["success_ci95"]
        shown = (f"{each[name]:,}" for name in ("episodes", "steps"))
        table.add_row(str(each["rounds"]), *shown, number(each["success_rate"]), f"{low:.2f}-{high:.2f}")
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps({"task": task, "rounds": found}, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)

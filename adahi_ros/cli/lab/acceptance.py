# SPDX-License-Identifier: Apache-2.0
"""`adahi acceptance`: rules of acceptance that carry weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from adahi_ros.cli.lab.task_options import TaskName, Workers, folder_of
from adahi_ros.cli.options import Backend, Checkpoints, JsonFile, Seed, finite, tried
from adahi_ros.cli.terminal import console, say, write_json

app = typer.Typer(help="Train a rule that decides what of a draft stands.", no_args_is_help=True)


@app.callback()
def acceptance() -> None:
    """Keep `train` a verb of its own, though there is but one."""


@app.command()
def train(
    task: TaskName,
    workers: Workers,
    out: Annotated[Path, typer.Option(help="File of weights to write, such as semantic.safetensors.")],
    episodes: Annotated[int, typer.Option(min=5, help="Of hybrid inference, to learn from.")] = 100,
    draft_temperature: Annotated[
        float, typer.Option(min=1e-3, max=100.0, callback=finite, help="At which the draft samples.")
    ] = 1.0,
    checkpoints: Checkpoints = None,
    backend: Backend = "onnxruntime",
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Train the head of the rule 'semantic' on forks of simulated worlds: which mismatches matter?"""
    from adahi_ros.acceptance.semantic import save_semantic_head
    from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles
    from adahi_ros.lab.training.train_semantic import lessons, train_semantic_head
    from adahi_ros.policies.interface import fingerprint_of

    tried("--out", out)
    files = PolicyFiles(folder_of(task, checkpoints), backend)
    with console.status("rolling out, and forking"):
        data = lessons(task, files, draft_temperature, seed, episodes, workers)
    head, found = train_semantic_head(data)
    save_semantic_head(out, replace(head, target=fingerprint_of(files.load().target)))
    write_json(json_file, {"task": task, "seed": seed, "episodes": episodes, **found})
    say(
        f"{found['mismatches']} mismatches, of which {found['matter']:.2f} matter; of {found['held_out']} "
        f"held out, the head ranks {found['area']:.2f} of the pairs right, "
        f"distance {found['area_of_distance']:.2f}"
    )
    say(f"weights: {out.resolve()}")

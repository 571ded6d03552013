# SPDX-License-Identifier: Apache-2.0
"""`adahi acceptance`: rules of acceptance that carry weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option

from adahi_ros.cli import options
from adahi_ros.cli.lab.task_options import TaskName, Workers, folder_of
from adahi_ros.cli.terminal import console, say, write_json


def train(
    task: TaskName,
    workers: Workers,
    out: Annotated[Path, Option(help="File of weights to write, such as semantic.safetensors.")],
    episodes: Annotated[int, Option(min=5, help="Of hybrid inference, to learn from.")] = 100,
    draft_temperature: Annotated[float, options.number("At which the draft samples.", 1e-3, 100.0)] = 1.0,
    checkpoints: options.Checkpoints = None,
    backend: options.Backend = "onnxruntime",
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Train the head of the rule 'semantic' on forks of simulated worlds: which mismatches matter?"""
    from adahi_ros.acceptance.semantic import save_semantic_head
    from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles
    from adahi_ros.lab.training.train_semantic import lessons, train_semantic_head
    from adahi_ros.policies.interface import fingerprint_of

    options.tried("--out", out)
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

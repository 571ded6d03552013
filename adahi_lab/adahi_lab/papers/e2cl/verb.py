# SPDX-License-Identifier: Apache-2.0
"""`adahi train feedback`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from adahi_lab.cli import options, task_options
from adahi_lab.cli.output import write_json
from adahi_ros.cli.terminal import console, say


def train_feedback(
    task: task_options.TaskName,
    out: Annotated[Path, Option(help="File of weights to write, such as feedback.safetensors.")],
    demos: Annotated[int, Option(min=1, help="Demonstrations to record, to learn plans from.")] = 20,
    guided: Annotated[int, Option(min=0, help="Episodes of a round in which the target acts.")] = 50,
    free: Annotated[int, Option(min=0, help="Episodes of a round in which the agent acts.")] = 50,
    rounds: Annotated[int, Option(min=0, max=100, help="Rounds of exploration; 0 trains plans only.")] = 2,
    dagger: Annotated[bool, Option("--dagger", help="Learn the target's replies as plans, too.")] = False,
    checkpoints: options.Checkpoints = None,
    backend: options.Backend = "onnxruntime",
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Train the proposer 'self_correcting': to plan, to foresee feedback, and to correct by it."""
    import torch

    from adahi_lab.evaluation.loaded_policies import PolicyFiles
    from adahi_lab.papers.e2cl.train_feedback import train_feedback
    from adahi_lab.tasks.demonstrations import NOISE, collect_parallel, seen_by_robots
    from adahi_lab.training.array_files import save_arrays

    options.tried("--out", out)
    torch.set_num_threads(1)
    policies = PolicyFiles(task_options.folder_of(task, checkpoints), backend).load()
    data = seen_by_robots(collect_parallel(task, demos, seed, NOISE, workers=1).trajectories, task)
    with console.status("training, exploring, and training"):
        agent, found = train_feedback(task, policies, data, seed, [(guided, free)] * rounds, dagger)
    save_arrays(out, vars(agent))
    write_json(json_file, {"task": task, "seed": seed, **found})
    shares = ", ".join(f"{name} {value}" for name, value in found.items())
    say(f"weights: {out.resolve()}; on held-out episodes: {shares}")

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
    guided: Annotated[int, Option(min=0, help="Episodes of a round in which the target acts.")] = 50,
    free: Annotated[int, Option(min=0, help="Episodes of a round in which the robot acts.")] = 50,
    rounds: Annotated[int, Option(min=1, max=100, help="Rounds of exploration and training.")] = 2,
    checkpoints: options.Checkpoints = None,
    backend: options.Backend = "onnxruntime",
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Train the proposer 'self_correcting': which drafts would be refused, and what instead?"""
    import torch

    from adahi_lab.evaluation.loaded_policies import PolicyFiles
    from adahi_lab.papers.e2cl.self_correction import save_self_correction
    from adahi_lab.papers.e2cl.train_feedback import train_feedback

    options.tried("--out", out)
    torch.set_num_threads(1)
    files = PolicyFiles(task_options.folder_of(task, checkpoints), backend)
    with console.status("exploring, and training"):
        network, found = train_feedback(task, files, seed, guided, free, rounds)
    save_self_correction(out, network)
    write_json(json_file, {"task": task, "seed": seed, **found})
    say(
        f"{found['replies']} replies; held out: {found['refused']:.2f} of the drafts refused, area under the "
        f"curve {found['area']:.2f}; distance from the reply {found['distance']:.2f} before its correction, "
        f"{found['distance_left']:.2f} after"
    )
    say(f"weights: {out.resolve()}")

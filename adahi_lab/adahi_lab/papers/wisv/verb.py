# SPDX-License-Identifier: Apache-2.0
"""`adahi train states`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option

from adahi_lab.cli import options, task_options
from adahi_lab.cli.output import write_json
from adahi_ros.cli.terminal import command_line, console, say


def train_states(
    task: task_options.TaskName,
    workers: task_options.Workers,
    out: Annotated[Path, Option(help="File of weights to write, such as wisv.safetensors.")],
    episodes: Annotated[int, Option(min=5, help="Episodes of lessons.")] = 100,
    checkpoints: options.Checkpoints = None,
    backend: options.Backend = "onnxruntime",
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Train the rule 'hidden_states' on forks of worlds."""
    import torch

    from adahi_lab.evaluation.loaded_policies import PolicyFiles
    from adahi_lab.papers.wisv.hidden_states import save_state_head
    from adahi_lab.papers.wisv.state_lessons import lessons
    from adahi_lab.papers.wisv.train_states import train_states
    from adahi_ros.policies.interface import fingerprint_of

    options.tried("--out", out)
    torch.set_num_threads(1)
    files = PolicyFiles(task_options.folder_of(task, checkpoints), backend)
    with console.status("rolling out, and forking"):
        data = lessons(task, files, seed, episodes, workers)
    head, found = train_states(data, seed)
    target, made = fingerprint_of(files.load().target), {"command": command_line(), "seed": str(seed)}
    save_state_head(out, replace(head, target=target), made)
    write_json(json_file, {"task": task, "seed": seed, "episodes": episodes, **found})
    say(
        f"{len(data)} mismatches, {found['lessons']} of them held out: {found['matter']:.2f} matter; the "
        f"head ranks {found['area']:.2f} of the pairs right, and keeps {found['kept']:.2f}, "
        f"{found['kept_wrongly']:.2f} wrongly; on a slow link it keeps {found['kept_slow']:.2f}"
    )
    say(f"weights: {out.resolve()}")

# SPDX-License-Identifier: Apache-2.0
"""`adahi train` of a rule, a proposer and an encoder: parts that carry weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from adahi_lab.cli import task_options
from adahi_ros.cli import options
from adahi_ros.cli.terminal import command_line, console, fit_bar, job_bar, say, write_json
from adahi_ros.core.assets import asset


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
    from adahi_lab.training.state_lessons import lessons
    from adahi_lab.training.train_states import train_states
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
    from adahi_lab.training.train_feedback import train_feedback

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


def train_encoder(
    task: Annotated[str, Argument(help="Task with a camera: ball, ball_instructed or kitchen.")],
    workers: task_options.Workers,
    out: Annotated[
        Path | None, Option(help="The files' common name. Default: checkpoints/encoders/TASK.")
    ] = None,
    recipe: Annotated[Path | None, Option(help="Default: config/encoders/TASK.yaml.")] = None,
    overwrite: options.Overwrite = False,
    json_file: options.JsonFile = None,
) -> None:
    """Train the encoder of a simulated camera. A stopped run continues."""
    from adahi_lab.tasks.camera import make_view
    from adahi_lab.tasks.frames import record_frames
    from adahi_lab.training import encoder_training
    from adahi_lab.training.fitting import Run
    from adahi_lab.training.recipes import load_encoder_recipe
    from adahi_ros.vision.encoder_export import save_encoder

    view = make_view(task)
    wanted = load_encoder_recipe(recipe if recipe is not None else asset(f"config/encoders/{task}.yaml"))
    out = out if out is not None else Path("checkpoints") / "encoders" / task
    options.tried("--out", options.replaceable("--out", out.with_name(f"{out.name}.json"), overwrite))
    state = out.with_name(f"{out.name}.training.safetensors")
    how = wanted.frames
    with job_bar("frames", how.episodes) as update:
        images, labels = record_frames(
            *(task, how.episodes, how.seed, how.action_noise, workers),
            lambda done, of: update(completed=done),
        )
    with fit_bar("encoder", wanted.fit.steps if wanted.fit else 0) as on_step:
        trained = encoder_training.train_encoder(
            images, labels, wanted, Run(wanted.seed, state, on_step=on_step)
        )
    errors = dict(zip(view.label_names, trained.errors.tolist(), strict=True))
    figures = {
        "command": command_line(),
        "seed": wanted.seed,
        "frames": len(images),
        "steps": len(trained.losses),
        "errors": errors,
    }
    files = save_encoder(out, trained.network, trained.config, figures)
    state.unlink(missing_ok=True)
    for name, error in errors.items():
        say(f"{name}: error {error:.2g} on frames held out")
    say(f"{files.weights}: {files.features} features, fingerprint {files.digest()}")
    write_json(json_file, {"task": task, "fingerprint": files.digest(), **figures})

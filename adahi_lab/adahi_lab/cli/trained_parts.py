# SPDX-License-Identifier: Apache-2.0
"""`adahi train encoder`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from adahi_lab.cli import options, task_options
from adahi_lab.cli.output import fit_bar, job_bar, write_json
from adahi_ros.cli.options import Overwrite, replaceable
from adahi_ros.cli.terminal import command_line, say
from adahi_ros.core.assets import asset


def train_encoder(
    task: Annotated[str, Argument(help="Task with a camera: ball, ball_instructed or kitchen.")],
    workers: task_options.Workers,
    out: Annotated[
        Path | None, Option(help="The files' common name. Default: checkpoints/encoders/TASK.")
    ] = None,
    recipe: Annotated[Path | None, Option(help="Default: config/encoders/TASK.yaml.")] = None,
    overwrite: Overwrite = False,
    json_file: options.JsonFile = None,
) -> None:
    """Train the encoder of a simulated camera. A stopped run continues."""
    from adahi_lab.encoders.encoder_export import save_encoder
    from adahi_lab.tasks.camera import make_view
    from adahi_lab.tasks.frames import record_frames
    from adahi_lab.training import encoder_training
    from adahi_lab.training.fitting import Run
    from adahi_lab.training.recipes import load_encoder_recipe

    view = make_view(task)
    wanted = load_encoder_recipe(recipe if recipe is not None else asset(f"config/encoders/{task}.yaml"))
    out = out if out is not None else Path("checkpoints") / "encoders" / task
    options.tried("--out", replaceable("--out", out.with_name(f"{out.name}.json"), overwrite))
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

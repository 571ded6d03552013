# SPDX-License-Identifier: Apache-2.0
"""`adahi encoder`: the frozen network from a camera's frames to features."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adahi_ros.cli.lab.task_options import Workers
from adahi_ros.cli.options import JsonFile, Overwrite, replaceable, tried
from adahi_ros.cli.terminal import command_line, progress, say, write_json
from adahi_ros.core.assets import asset

app = typer.Typer(help="Train the encoder that a camera's frames go through.", no_args_is_help=True)


@app.callback()
def encoder() -> None:
    """Keep `train` a verb of its own, though there is but one."""


@app.command()
def train(
    task: Annotated[
        str, typer.Argument(help="A task that a camera looks at: ball, ball_instructed or kitchen.")
    ],
    workers: Workers,
    out: Annotated[
        Path | None, typer.Option(help="The files' common name. Default: checkpoints/encoders/TASK.")
    ] = None,
    recipe: Annotated[Path | None, typer.Option(help="Default: config/encoders/TASK.yaml.")] = None,
    overwrite: Overwrite = False,
    json_file: JsonFile = None,
) -> None:
    """Photograph the expert's episodes and learn where things are. A stopped run goes on where it was."""
    from adahi_ros.lab.tasks.camera import make_view
    from adahi_ros.lab.tasks.frames import record_frames
    from adahi_ros.lab.training.encoder_training import train_encoder
    from adahi_ros.lab.training.fitting import Run
    from adahi_ros.lab.training.recipes import load_encoder_recipe
    from adahi_ros.vision.encoder_export import save_encoder

    view = make_view(task)
    wanted = load_encoder_recipe(recipe if recipe is not None else asset(f"config/encoders/{task}.yaml"))
    out = out if out is not None else Path("checkpoints") / "encoders" / task
    tried("--out", replaceable("--out", out.with_name(f"{out.name}.json"), overwrite))
    state = out.with_name(f"{out.name}.training.safetensors")
    with progress() as bar:
        job = bar.add_task("frames", total=wanted.frames.episodes, note="")
        frames = wanted.frames
        images, labels = record_frames(
            task,
            frames.episodes,
            frames.seed,
            frames.action_noise,
            workers,
            lambda done, episodes: bar.update(job, completed=done),
        )
        job = bar.add_task("encoder", total=wanted.fit.steps if wanted.fit else 0, note="")
        run = Run(
            wanted.seed,
            state,
            on_step=lambda step, loss: bar.update(job, completed=step, note=f"loss {loss:.4g}"),
        )
        trained = train_encoder(images, labels, wanted, run)
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

# SPDX-License-Identifier: Apache-2.0
"""`adahi gate`: gates that carry weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from adahi_ros.cli import options
from adahi_ros.cli.lab.task_options import TASKS_THERE_ARE, Workers, file_name, known_task
from adahi_ros.cli.terminal import console, say, write_json

if TYPE_CHECKING:
    from adahi_ros.core.trajectories import Trajectories


def train(
    task: Annotated[str, Argument(help=f"{TASKS_THERE_ARE}; with --data, what that is of.")],
    workers: Workers,
    out: Annotated[Path, Option(help="File of weights to write, such as gate.safetensors.")],
    proposer: Annotated[
        str, Option(help="Who acts between the target's plans: corrector, or plan for nobody.")
    ] = "corrector",
    episodes: Annotated[int, Option(min=5, help="At each of three rates of asking.")] = 40,
    dataset: Annotated[
        Path | None,
        Option(
            "--data",
            help="Learn of this folder of 'adahi dataset from-bag', as of a robot that is not simulated.",
        ),
    ] = None,
    checkpoints: options.Checkpoints = None,
    backend: options.Backend = "onnxruntime",
    picture: Annotated[
        Path | None, Option(help="Picture of its reliability. Default: results/gate-TASK-PROPOSER.png.")
    ] = None,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Train the gate 'learned' on rollouts or bags, asking at random: what harm does it not to ask?"""
    from adahi_ros.gates.learned import SIGNS, save_harm_model
    from adahi_ros.lab.calibration.replay import check_sizes
    from adahi_ros.lab.evaluation.loaded_policies import PolicyFiles
    from adahi_ros.lab.methods.actors import target_of
    from adahi_ros.lab.reporting.calibration_figure import draw_reliability
    from adahi_ros.lab.training.train_gate import lessons, rank_correlations, reliability, train_harm_model

    if proposer not in ("plan", "corrector"):
        raise ValueError(f"proposer: {proposer!r}, must be plan or corrector")
    name = task if dataset is not None else file_name(known_task(task))
    picture = options.picture_or_default(picture, f"gate-{name}-{proposer}")
    options.tried("--out", out)
    files = PolicyFiles(checkpoints if checkpoints is not None else options.folder_named(name), backend)
    where: str | Trajectories = task
    if dataset is not None:
        where = options.recorded(dataset, task)
        check_sizes(target_of(files.load(), proposer).signature, where)
    with console.status("rolling out"):
        data = lessons(where, files, proposer, seed, episodes, workers)
    model, test = train_harm_model(data, seed)
    found = {**reliability(model, test), "rank_correlations": rank_correlations(test, list(SIGNS))}
    save_harm_model(out, model)
    draw_reliability(found, f"{name}, {proposer}", picture)
    write_json(json_file, {"task": name, "proposer": proposer, "seed": seed, **found})
    told = ", ".join(f"{sign} {value:.2f}" for sign, value in found["rank_correlations"].items())
    say(f"rank correlation with the harm: learned {found['rank_correlation']:.2f}; {told}")
    say(f"weights: {out.resolve()}\npicture: {picture}")

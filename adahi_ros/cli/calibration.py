"""`adahi calibrate`, and the calibration that other verbs use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adahi_ros.assets import asset
from adahi_ros.cli.options import (
    Backend,
    Checkpoints,
    JsonFile,
    Seed,
    TaskName,
    Workers,
    file_name,
    folder_of,
)
from adahi_ros.cli.terminal import command_line, console, say, write_json

if TYPE_CHECKING:
    from adahi_ros.evaluation.bench import PolicyFiles
    from adahi_ros.speculation.parameter_file import Calibration

DEFAULT_RATE = 0.6


def calibrate(
    task: TaskName,
    workers: Workers,
    rate: Annotated[
        float | None, typer.Option(help="Transmission rate to reach, between 0 and 1. Default: 0.6.")
    ] = None,
    rejection: Annotated[
        float | None, typer.Option(help="Instead of a rate: set the threshold at this rejection probability.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Parameter file. Default: config/TASK.yaml.")] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Calibration episodes.")] = 200,
    smoothing: Annotated[
        float | None,
        typer.Option(help="Weight of the newest action. Default: what ranks rejections best."),
    ] = None,
    normalization: Annotated[
        str | None,
        typer.Option(help="Of the deviation: std or average. Default: what ranks rejections best."),
    ] = None,
    draft_temperature: Annotated[float, typer.Option(help="At which the draft samples.")] = 1.0,
    checkpoints: Checkpoints = None,
    backend: Backend = "onnxruntime",
    picture: Annotated[
        Path | None, typer.Option(help="Picture to write. Default: results/calibration-TASK.png.")
    ] = None,
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Measure how deviation tells rejection; write thresholds as a ROS parameter file."""
    from adahi_ros.evaluation.bench import PolicyFiles
    from adahi_ros.evaluation.calibrate import calibrate as run
    from adahi_ros.evaluation.calibrate import node_parameters
    from adahi_ros.reporting.calibration_figure import draw_calibrations
    from adahi_ros.reporting.tables import calibration_table

    if rate is not None and rejection is not None:
        raise ValueError(f"rate: {rate}, must be left out where rejection ({rejection}) is given")
    name = file_name(task)
    out = out if out is not None else Path("config") / f"{name}.yaml"
    with console.status("calibrating") as status:
        found = run(
            task,
            PolicyFiles(folder_of(task, checkpoints), backend),
            DEFAULT_RATE if rate is None else rate,
            seed,
            episodes,
            smoothing,
            normalization,
            draft_temperature,
            rejection,
            workers,
            lambda line: status.update(f"calibrating: {line}"),
        )
    draft = f"{name}/draft" if checkpoints is None else str((checkpoints / "draft").resolve())
    found.save(out, "deviation", command_line(), node_parameters(task, draft))
    picture = picture if picture is not None else Path("results") / f"calibration-{name}.png"
    draw_calibrations([found], picture)
    console.print(calibration_table(found))
    say(f"parameters: {out}\npicture: {picture}")
    write_json(json_file, {"task": name, "seed": seed, "thresholds": found.thresholds, **found.figures})


def calibration_for(
    task: str,
    files: PolicyFiles,
    path: Path | None,
    rate: float | None,
    draft_temperature: float | None,
    seed: int,
    workers: int,
) -> Calibration:
    """Load a calibration; make it anew where the user asks for another rate or temperature."""
    from adahi_ros.evaluation.bench import check_fits
    from adahi_ros.evaluation.calibrate import EPISODES
    from adahi_ros.evaluation.calibrate import calibrate as run
    from adahi_ros.speculation.parameter_file import load_calibration

    name = file_name(task)
    found = load_calibration(path if path is not None else asset(f"config/{name}.yaml"))
    if rate is None:
        check_fits(found, name, files.load())
    if rate is None and draft_temperature in (None, found.draft_temperature):
        return found
    with console.status("recalibrating") as status:
        return run(
            task,
            files,
            found.transmission_rate if rate is None else rate,
            seed,
            EPISODES,
            found.smoothing,
            found.normalization,
            found.draft_temperature if draft_temperature is None else draft_temperature,
            workers=workers,
            say=lambda line: status.update(f"recalibrating: {line}"),
        )

"""Arguments and options that several verbs have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adahi_ros.assets import asset
from adahi_ros.parallel import cores


def known_task(name: str) -> str:
    """Return the name of a task, or raise the registry's error before anything is loaded."""
    from adahi_ros.tasks import make

    make(name)
    return name


def file_name(task: str) -> str:
    """Return what the files of a task are called; the task may be given as a file itself."""
    from adahi_ros.tasks import make

    return make(task).spec.name


def folder_of(task: str, checkpoints: Path | None) -> Path:
    """Return the folder of a task's checkpoints."""
    return checkpoints if checkpoints is not None else asset(f"checkpoints/{file_name(task)}")


def existing(option: str, path: Path) -> Path:
    """Return the file of an option.

    Raises:
        ValueError: there is none; names the option.
    """
    if not path.is_file():
        raise ValueError(f"{option}: {path}, no such file")
    return path


TaskName = Annotated[
    str,
    typer.Argument(
        help="The task: ball, ball_camera, kitchen, kitchen_camera, swarm, or a YAML file.",
        callback=known_task,
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random draw.")]
JsonFile = Annotated[
    Path | None, typer.Option("--json", dir_okay=False, help="Write the figures to this file.")
]
Checkpoints = Annotated[
    Path | None, typer.Option(help="Folder with tokenizer, draft and target. Default: the shipped one.")
]
Backend = Annotated[str, typer.Option(help="Inference backend: onnxruntime, torch or lerobot.")]
Workers = Annotated[
    int, typer.Option(min=1, default_factory=cores, show_default="all cores", help="Processes to work in.")
]
Rate = Annotated[float | None, typer.Option(help="Recalibrate every gate to this transmission rate first.")]
DraftTemperature = Annotated[
    float | None, typer.Option(help="At which the draft samples; recalibrates the gates.")
]
CalibrationFile = Annotated[
    Path | None, typer.Option(help="File of 'adahi calibrate'. Default: config/TASK.yaml.")
]
ProfileName = Annotated[str, typer.Option("--profile", help="A name of 'adahi link list', or a YAML file.")]
Namespace = Annotated[str, typer.Option(help="Of the robot whose topics these are.")]
ContractName = Annotated[str, typer.Option("--contract", help="A shipped contract's name, or a YAML file.")]

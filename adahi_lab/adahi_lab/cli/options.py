# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that several of the lab's verbs share."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, CallbackParam, Option

from adahi_ros.cli.options import each_bag, number
from adahi_ros.core.assets import asset, roots, shipped
from adahi_ros.core.missing_assets import how_to_get

if TYPE_CHECKING:
    from adahi_lab.datasets.trajectories import Trajectories

PICTURE_SUFFIXES = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".webp")


def folder_named(name: str) -> Path:
    """Return the folder of the shipped checkpoints of a name; raises as `folder_of`."""
    relative = f"checkpoints/{name}"
    if not shipped(relative):
        way = how_to_get(relative, roots())
        found = "installed" if way else "shipped"
        raise ValueError(
            f"--checkpoints: none, must be given for {name}, of which no policies are {found}{way}"
        )
    return asset(relative)


def recorded(dataset: Path, task: str) -> Trajectories:
    """Return the contents of a folder of 'adahi data from-bag'.

    Raises:
        ValueError: it is another kind of folder, or of another task or robot.
    """
    from adahi_lab.datasets.bag_dataset import TRAJECTORIES
    from adahi_lab.datasets.trajectories import Trajectories

    if not (dataset / TRAJECTORIES).is_file():
        raise ValueError(
            f"--data: {dataset}, has no {TRAJECTORIES}; make it with 'adahi data from-bag' or "
            "'adahi data from-lerobot'"
        )
    data = Trajectories.load(dataset / TRAJECTORIES)
    if task != data.task:
        raise ValueError(f"task: {task!r}, must be {data.task!r}, which {dataset} is of")
    return data


def existing(option: str, path: Path) -> Path:
    """Return the file of an option.

    Raises:
        ValueError: it does not exist; names the option.
    """
    if not path.is_file():
        raise ValueError(f"{option}: {path}, no such file")
    return path


def recipe_file(recipe: Path | None, name: str) -> Path:
    """Return a recipe file: the given one, which may be a shipped one's path, or the shipped one of a name.

    Raises:
        ValueError: it does not exist, or none is given and none is shipped.
    """
    relative = f"config/recipes/{name}.yaml" if recipe is None else str(recipe)
    if recipe is not None and (recipe.is_file() or not shipped(relative)):
        return existing("--recipe", recipe)
    if not shipped(relative):
        raise ValueError(f"--recipe: none, must be given: no recipe for {name!r} is shipped")
    return asset(relative)


def tried(option: str, path: Path) -> Path:
    """Return the path of a file to write, after a check that it can be written, before hours of work.

    Raises:
        ValueError: it cannot be written; names the option.
    """
    try:
        _check_writable(path)
    except OSError as error:
        raise ValueError(f"{option}: {path}, cannot be written ({error.strerror})") from None
    return path


def _check_writable(path: Path) -> None:
    """Check that a file, with its folder, can be written later; leave nothing behind.

    Raises:
        OSError: it cannot.
    """
    path = path.resolve()
    missing = [folder for folder in path.parents if not folder.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.touch()
            path.unlink()
        elif path.is_file() or path.is_dir():  # a check would end a pipe's reader
            path.open("ab").close()
    finally:
        with suppress(OSError):  # another process uses them by now
            for folder in missing:
                folder.rmdir()


def policy_there(option: str, path: Path) -> Path:
    """Return the FOLDER/NAME of a policy.

    Raises:
        ValueError: it does not exist; names the option.
    """
    from adahi_ros.policies.backends import is_policy

    if not (is_policy(path) or path.exists()):
        raise ValueError(f"{option}: {path}, no such checkpoint")
    return path


def picture_file(option: str, path: Path) -> Path:
    """Return the path of a picture to write; raises as `tried` does, or for an unknown picture format."""
    if path.suffix not in PICTURE_SUFFIXES:
        raise ValueError(f"{option}: {path}, must end in one of {', '.join(PICTURE_SUFFIXES)}")
    return tried(option, path)


def share(param: CallbackParam, value: float | None) -> float | None:
    """Refuse a rate that no threshold reaches, before anything is loaded."""
    if value is not None and not 0.0 < value < 1.0:
        raise ValueError(f"{param.name}: {value}, must be between 0 and 1")
    return value


def picture(stem: str) -> Any:
    """Return the option for the picture that `picture_or_default` completes."""
    return Option(help=f"Picture to write. Default: results/{stem}.png.")


def picture_or_default(given: Path | None, stem: str) -> Path:
    """Return the path of a picture to write; raises as `picture_file`."""
    return picture_file("--picture", given if given is not None else Path("results") / f"{stem}.png")


def left_out(because: str, **given: object) -> None:
    """Check that none of these options is given, by name; None stands for one that is not.

    Raises:
        ValueError: one is; `because` is the condition under which it must be left out.
    """
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name}: {value}, must be left out where {because}")


def calibration_file(given: Path | None, name: str) -> Path | None:
    """Return the given calibration, else the shipped one of a task or robot; None where neither exists.

    Raises:
        ValueError: the file does not exist.
    """
    if given is not None:
        return existing("--calibration", given)
    return asset(f"config/{name}.yaml") if shipped(f"config/{name}.yaml") else None


def _tried(param: CallbackParam, value: Path | None) -> Path | None:
    return None if value is None else tried(param.opts[0], value)


Seed = Annotated[int, Option(min=0, help="Seed of every random draw.")]

JsonFile = Annotated[
    Path | None, Option("--json", dir_okay=False, callback=_tried, help="Write the figures to this file.")
]

Checkpoints = Annotated[
    Path | None, Option(help="Folder with tokenizer, draft and target. Default: the shipped one.")
]

Backend = Annotated[str, Option(help="Inference backend: onnxruntime, int8 or torch.")]

Rate = Annotated[
    float | None, Option(callback=share, help="Recalibrate every gate to this transmission rate first.")
]

TEMPERATURES = (1e-3, 100.0)  # as the nodes take them

DraftTemperature = Annotated[
    float | None, number("Sampling temperature of the draft; recalibrates the gates.", *TEMPERATURES)
]

CalibrationFile = Annotated[
    Path | None, Option(help="File of 'adahi thresholds'. Default: config/TASK.yaml.")
]

ProfileName = Annotated[str, Option("--profile", help="A name of 'adahi lab link list', or a YAML file.")]

Bags = Annotated[
    list[Path],
    Argument(callback=each_bag, help="Bags: folders, or single .mcap or .db3 files. Or a folder of bags."),
]

Recordings = Annotated[
    list[Path],
    Argument(
        metavar="BAGS...",
        callback=each_bag,
        help="Bags: folders, or single .mcap or .db3 files. Or folders of bags, or LeRobotDatasets.",
    ),
]

KeepFailures = Annotated[
    bool, Option("--keep-failures", help="Keep episodes that episode_result marks as failed.")
]

Instruction = Annotated[
    str, Option(help="Instruction of the target until the bag's topic instruction has one.")
]

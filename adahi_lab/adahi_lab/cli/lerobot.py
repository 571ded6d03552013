# SPDX-License-Identifier: Apache-2.0
"""`adahi import`, `adahi data from-lerobot` and `adahi data to-lerobot`: policies and datasets of LeRobot."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from adahi_lab.cli import options
from adahi_lab.cli.output import job_bar
from adahi_ros.cli.options import Incomplete, Namespace, each_bag, number
from adahi_ros.cli.terminal import command_line, console, say


def policy(
    folder: Annotated[Path, Argument(help="Folder written by LeRobot's save_pretrained.")],
    out: Annotated[Path, Option(help="Folder to write, such as checkpoints/arm.")],
    encoder: Annotated[
        Path | None, Option(help="Encoder to write. Default: encoder in the same folder.")
    ] = None,
) -> None:
    """Import a VQ-BeT of LeRobot as the target, with its action tokenizer and its camera's encoder."""
    from adahi_lab.encoders.encoder_export import save_encoder
    from adahi_lab.encoders.lerobot_encoder import load_encoder
    from adahi_lab.lerobot.lerobot_vqbet import LeRobotPolicy, lerobot_tokenizer
    from adahi_lab.training.vqbet_files import save_tokenizer

    if (out / "target").exists():
        raise ValueError(f"out: {out / 'target'} is there already, must be a folder without one")
    _check_vqbet(folder)
    tokenizer, network = lerobot_tokenizer(folder), load_encoder(folder)  # refuse before anything is written
    path = options.tried("--encoder", encoder if encoder is not None else out / "encoder")
    training = {"command": command_line()}
    shutil.copytree(folder, out / "target")
    (out / "target.yaml").write_text("kind: lerobot_vqbet\nfolder: target\n")
    decoder = save_tokenizer(out, tokenizer, training)
    save_encoder(path, network, network.config, training)
    signature = LeRobotPolicy(out / "target").signature
    say(f"target: {out / 'target'}, {signature.parameters:,} parameters")
    say(f"tokenizer: {out}, fingerprint {decoder.fingerprint}\nencoder: {path}, {network.features} features")


def _check_vqbet(folder: Path) -> None:
    """Refuse what only LeRobot itself can run.

    Raises:
        ValueError: another policy, such as an ACT; says how to run that.
    """
    from adahi_lab.lerobot.lerobot_checkpoint import VQBET
    from adahi_lab.lerobot.lerobot_files import CONFIG
    from adahi_ros.core.files import read_json

    path = folder / CONFIG
    kind = read_json(path).get("type") if path.is_file() else VQBET  # a missing file has its own error
    if isinstance(kind, str) and kind != VQBET:
        raise ValueError(
            f"{path}: type: {kind!r}, must be {VQBET!r}; other policies run without an import, by a target "
            "file with 'kind: lerobot': see docs/how_to/run_lerobot.md"
        )


def dataset(
    folder: Annotated[Path, Argument(help="A LeRobotDataset of format 3.")],
    task: Annotated[str, Option(help="Robot type of the matching contract.")],
    out: Annotated[Path, Option(help="Folder to write, for 'adahi train policy --data'.")],
    observation: Annotated[
        list[str] | None,
        Option(help="Features of an observation, in this order. Default: those of the state."),
    ] = None,
) -> None:
    """Convert a LeRobotDataset into training data."""
    import warnings

    from adahi_lab.datasets.bag_dataset import TRAJECTORIES
    from adahi_lab.datasets.lerobot_dataset import load_dataset

    options.tried("--out", out / TRAJECTORIES)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = load_dataset(folder, task, observation)
    for warning in caught:
        say(str(warning.message))
    data.save(out / TRAJECTORIES)
    say(f"{out}: {len(data)} episodes, {len(data.observations)} steps of {data.task}")


def export(
    data: Annotated[
        list[Path],
        Argument(
            callback=each_bag,
            help="File of 'adahi data simulate', or a folder for 'adahi train policy --data'. Or bags, with "
            "their images, which LeRobot writes.",
        ),
    ],
    out: Annotated[Path, Option(help="Folder to write, for LeRobot's trainer.")],
    contract: Annotated[
        str | None, Option(help="Of bags: a shipped contract's name, or a YAML file.")
    ] = None,
    namespace: Namespace = "",
    images: Annotated[
        bool, Option("--images", help="Of bags: images in the rows instead of videos.")
    ] = False,
    keep_failures: options.KeepFailures = False,
    incomplete: Incomplete = False,
    robot_type: Annotated[
        str | None,
        Option(
            help="Of bags: as in the dataset to merge with, such as so_follower, which LeRobot writes for an "
            "SO-101. Default: the contract's."
        ),
    ] = None,
    fps: Annotated[
        float | None,
        number("Control steps per second. Default: of the task or the contract.", 0.1, 1000.0),
    ] = None,
    joints: Annotated[
        int | None,
        Option(min=0, help="Entries of the robot's own state, 0 for all. Default: the task's."),
    ] = None,
    instruction: Annotated[
        str | None,
        Option(help="Task description, one sentence, where a bag has none. Default: the name of the task."),
    ] = None,
) -> None:
    """Write episodes, or bags with their images, as a LeRobotDataset of format 3, for LeRobot's trainer."""
    from adahi_lab.datasets.bag_dataset import CONTRACT, TRAJECTORIES
    from adahi_lab.datasets.dataset_writer import save_dataset
    from adahi_lab.datasets.trajectories import Trajectories
    from adahi_lab.tasks import TASKS, make
    from adahi_ros.bags.bag_files import is_bag
    from adahi_ros.contract.parsing import load_contract

    if is_bag(data[0]):
        options.left_out(f"data ({data[0]}) is a bag", fps=fps, joints=joints)
        how = keep_failures, incomplete, robot_type, instruction
        _export_bags(data, out, contract, namespace, images, *how)
        return
    of_bags = {"namespace": namespace, "images": images, "keep_failures": keep_failures}
    of_bags |= {"incomplete": incomplete, "robot_type": robot_type, "contract": contract}
    options.left_out("data is no bag", **{name: value or None for name, value in of_bags.items()})
    if len(data) > 1:
        raise ValueError(f"data: {data[1]}, must be one file or folder, unless bags are given")
    (source,) = data
    recorded = Trajectories.load(source / TRAJECTORIES if source.is_dir() else source)
    if recorded.task in TASKS:
        spec = make(recorded.task).spec
        joints = len(spec.joint_names) if joints is None else joints
        fps = spec.control_rate_hz if fps is None else fps
    elif fps is None and (source / CONTRACT).is_file():
        fps = load_contract(str(source / CONTRACT)).rate_hz
    if fps is None:
        raise ValueError(f"--fps: none, must be given for {recorded.task}, which has no task or contract")
    if recorded.image_features.shape[1]:
        say(f"{source}: left out of the observations: features of images")
    save_dataset(out, recorded, fps, joints or 0, instruction or recorded.task)
    say(f"{out}: {len(recorded)} episodes, {len(recorded.observations)} steps of {recorded.task}, {fps:g} Hz")


def _export_bags(
    bags: list[Path],
    out: Path,
    contract: str | None,
    namespace: str,
    images: bool,
    keep_failures: bool,
    incomplete: bool,
    robot_type: str | None,
    instruction: str | None,
) -> None:
    from adahi_lab.calibration.bag_corrections import driven_steps
    from adahi_lab.datasets.bag_dataset import read_dataset
    from adahi_lab.datasets.filmed_dataset import save_filmed
    from adahi_ros.contract.parsing import load_contract

    if contract is None:
        raise ValueError("--contract: none, must say what a step of the bags is")
    if out.exists():
        raise ValueError(f"--out: {out}, is there already, must be a new folder")
    read = load_contract(contract)
    sentence = instruction or read.robot_type
    lost = say if incomplete else None
    with console.status("reading") as status:

        def shown(bag: Path) -> None:
            status.update(f"reading {bag}")

        dataset = read_dataset(bags, read, namespace, keep_failures, shown, lost, sentence, say)
        driven, said = driven_steps(bags, dataset, namespace, lost)
    data = dataset.trajectories
    interventions = driven if said else None
    with job_bar("writing", len(data.observations)) as bar:
        on_step = partial(bar, advance=1)
        save_filmed(out, dataset, bags, read, namespace, not images, interventions, robot_type, on_step)
    if said:
        say(f"intervention: a person drove {driven.sum()} of {len(driven)} steps")
    if instruction is None and (untold := dataset.instructions.count(sentence)):
        say(f"{untold} steps have no instruction, and now the task {sentence!r}; see --instruction")
    for fault in dataset.summary["faults"].values():
        say(f"passed over {fault['count']} times, such as: {fault['first']}")
    say(f"{out}: {len(data)} episodes, {len(data.observations)} steps of {data.task}, {read.rate_hz:g} Hz")

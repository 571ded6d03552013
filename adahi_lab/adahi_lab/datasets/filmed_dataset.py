# SPDX-License-Identifier: Apache-2.0
"""Bags as a LeRobotDataset with images, by LeRobot's own writer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from adahi_lab.datasets.bag_dataset import BagDataset, observations_of
from adahi_lab.datasets.lerobot_dataset import ACTION, INTERVENTION
from adahi_ros.contract.assembler import Observation
from adahi_ros.contract.contract import Contract
from adahi_ros.policies.remote.lerobot_metadata import INSTALL

POSITION = ".pos"


def save_filmed(
    folder: Path,
    dataset: BagDataset,
    bags: Sequence[Path],
    contract: Contract,
    namespace: str,
    videos: bool,
    driven: np.ndarray | None,
    robot_type: str | None = None,
    on_step: Callable[[], object] = lambda: None,
) -> None:
    """Write the steps of bags, each with its images, in the contract's units.

    Args:
        folder: to write; must not exist.
        dataset: of the bags, with instructions.
        bags: in the order of the dataset.
        contract: of the robot.
        namespace: of the robot.
        videos: images become videos, else a file in each row.
        driven: (T,) bool, steps that a person drove, which become `INTERVENTION`; None for no such feature.
        robot_type: of the dataset; None for the contract's.
        on_step: called after each step.

    Raises:
        ImportError: LeRobot is not installed; says what to install.
        ValueError: the rate is no whole number, as LeRobot needs it.
    """
    os.environ.setdefault("SVT_LOG", "1")  # errors alone, of 70 lines for each video
    try:
        from lerobot.datasets.lerobot_dataset import LeRobotDataset
    except ModuleNotFoundError as error:
        raise ImportError(f"images are written by LeRobot: {error.name}: not installed; {INSTALL}") from error
    if contract.rate_hz != int(contract.rate_hz):
        raise ValueError(f"contract: fps: {contract.rate_hz:g}, must be a whole number for LeRobot")
    named = {**contract.named, ACTION: contract.action.select}
    features: dict[str, dict[str, Any]] = {
        key: {"dtype": "float32", "shape": (len(entries),), "names": [_entry(each) for each in entries]}
        for key, entries in named.items()
    }
    for camera in contract.cameras:
        shape = {"shape": (camera.rows, camera.columns, 3), "names": ["height", "width", "channels"]}
        features[camera.key] = {"dtype": "video" if videos else "image", **shape}
    if driven is not None:
        features[INTERVENTION] = {"dtype": "bool", "shape": (1,), "names": None}
    out = LeRobotDataset.create(
        *(folder.name, int(contract.rate_hz), features),
        root=folder,
        robot_type=robot_type or contract.robot_type,
        use_videos=videos,
    )
    ends = set(dataset.trajectories.ends.tolist())
    actions = dataset.trajectories.actions
    for step, observation in enumerate(_of_steps(dataset, bags, contract, namespace)):
        numbers = {key: np.float32(observation.named[key]) for key in contract.named}
        frame = {**numbers, **observation.images, ACTION: actions[step], "task": dataset.instructions[step]}
        out.add_frame(frame if driven is None else {**frame, INTERVENTION: driven[step : step + 1]})
        if step + 1 in ends:
            out.save_episode(parallel_encoding=False)  # no fork beside threads
        on_step()
    out.finalize()


def _entry(path: str) -> str:
    """Return LeRobot's name of an entry, such as gripper.pos of position.gripper."""
    quantity, _, joint = path.partition(".")
    return f"{joint}{POSITION}" if quantity in ("position", "positions") else path


def _of_steps(
    dataset: BagDataset, bags: Sequence[Path], contract: Contract, namespace: str
) -> Iterator[Observation]:
    """Yield the observation of each step of a dataset with its images; few are in memory at a time."""
    for bag, path in enumerate(bags):
        wanted = set(dataset.places[dataset.places[:, 0] == bag, 1].tolist())
        for number, observation in enumerate(observations_of(path, contract, namespace, instructed=True)):
            if number in wanted:
                yield observation

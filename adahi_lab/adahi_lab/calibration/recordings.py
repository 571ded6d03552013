# SPDX-License-Identifier: Apache-2.0
"""Recorded steps of a robot from every source: bags and LeRobotDatasets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from adahi_lab.calibration.lerobot_recording import LeRobotRecording, is_lerobot
from adahi_lab.datasets.bag_dataset import BagDataset, read_dataset
from adahi_lab.datasets.trajectories import Trajectories
from adahi_ros.bags.bag_reader import OnLoss
from adahi_ros.contract.contract import Contract


def bags_first(paths: Sequence[Path]) -> list[Path]:
    """Return bags and datasets in the order in which `read_recordings` numbers them."""
    return sorted(paths, key=is_lerobot)


def read_recordings(
    paths: Sequence[Path],
    contract: Contract,
    namespace: str = "",
    instruction: str | None = None,
    on_path: Callable[[Path], None] = lambda path: None,
    on_loss: OnLoss | None = None,
    on_warning: Callable[[str], None] = lambda line: None,
) -> BagDataset:
    """Read all episodes, failures among them; a gripper's measured position replaces its ROS action.

    Args:
        paths: bags, then LeRobotDatasets; see `bags_first`.
        contract: defines observations and actions.
        namespace: of the robot in bags.
        instruction: the target's, until a source has another; None for a target without instructions.
        on_path: called with each source before it is read.
        on_loss: see `read_dataset`.
        on_warning: called with what is read otherwise than the contract says.

    Raises:
        BagError: a bag cannot be used.
        ImportError: a package for LeRobotDatasets is not installed; names it.
        FileNotFoundError: a file of a LeRobotDataset is missing.
        ValueError: a LeRobotDataset is damaged, or does not fit the contract.
    """
    bags = [path for path in paths if not is_lerobot(path)]
    parts: list[BagDataset] = []
    if bags:
        how = True, on_path, on_loss, instruction, on_warning
        parts.append(read_dataset(bags, contract, namespace, *how))
    for number, path in enumerate(paths[len(bags) :], len(bags)):
        on_path(path)
        parts.append(LeRobotRecording.read_from(path, contract, on_warning).dataset(instruction, number))
    return parts[0] if len(parts) == 1 else _joined(parts)


def _joined(parts: Sequence[BagDataset]) -> BagDataset:
    """Return all steps; image features, which only bags have, are left out."""
    return replace(
        parts[0],
        trajectories=Trajectories.joined([each.trajectories.without_images() for each in parts]),
        stamps_ns=np.concatenate([each.stamps_ns for each in parts]),
        places=np.concatenate([each.places for each in parts]),
        instructions=tuple(text for each in parts for text in each.instructions),
        summary={**parts[0].summary, "bags": [bag for each in parts for bag in each.summary["bags"]]},
    )

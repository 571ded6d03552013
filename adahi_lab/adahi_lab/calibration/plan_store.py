# SPDX-License-Identifier: Apache-2.0
"""Plans of a target on disk; a stopped run continues where it ended."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from adahi_lab.calibration.lerobot_recording import files_of_lerobot, is_lerobot
from adahi_lab.training.working_folder import working_in
from adahi_ros.bags.bag_files import files_of
from adahi_ros.core.files import LARGEST_RECORDING, check_size
from adahi_ros.core.written_files import replacing, save_json

QUESTION = "question.json"
BLOCK = 1 << 20
PLANS = "plans"


class PlanStore:
    """Plans (T, S, H, A) float32 in the order of their steps, several steps in each file.

    Args:
        folder: folder of all stores.
        question: everything that the plans depend on; another question has another store.
        shape: S, H and A.

    Raises:
        RuntimeError: another process fills the store.
        ValueError: a file of it is damaged.
    """

    def __init__(self, folder: Path, question: Mapping[str, object], shape: tuple[int, int, int]) -> None:
        text = json.dumps(question, sort_keys=True).encode()
        self.folder = folder / hashlib.blake2b(text, digest_size=8).hexdigest()
        self._held = ExitStack()  # as long as the store is used
        self._held.enter_context(working_in(self.folder, "planning"))
        self._question = dict(question)
        self._shape = shape
        self._count = sum(len(part) for part in self._parts())

    def __len__(self) -> int:
        """Return T, the number of steps with stored plans."""
        return self._count

    def append(self, plans: np.ndarray) -> None:
        """Store the plans (N, S, H, A) of the next N steps."""
        if not (self.folder / QUESTION).exists():
            save_json(self.folder / QUESTION, self._question)  # for people
        with replacing(self.folder / f"{len(self):09d}.safetensors") as partial:
            save_file({PLANS: np.ascontiguousarray(plans, dtype=np.float32)}, partial)
        self._count += len(plans)

    def load(self) -> np.ndarray:
        """Return all plans.

        Raises:
            ValueError: a file is damaged; names it.
        """
        return np.concatenate([np.zeros((0, *self._shape), np.float32), *self._parts()])

    def _parts(self) -> list[np.ndarray]:
        parts: list[np.ndarray] = []
        done = 0
        while (path := self.folder / f"{done:09d}.safetensors").is_file():
            parts.append(self._part(path))
            done += len(parts[-1])
        return parts

    def _part(self, path: Path) -> np.ndarray:
        try:
            check_size(path, LARGEST_RECORDING)
            plans: np.ndarray = load_file(path)[PLANS]
            if plans.dtype != np.float32 or plans.shape[1:] != self._shape or not len(plans):
                raise ValueError(f"{plans.dtype} {plans.shape}, must be float32 (N, {self._shape})")
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise ValueError(f"{path}: not stored plans ({error}); delete it to plan again") from None
        return plans


def digest_of_bags(paths: Sequence[Path]) -> list[str]:
    """Return what identifies the content of each bag or LeRobotDataset, independent of its name.

    Raises:
        BagError: there is no bag.
    """
    return [_digest(files_of_lerobot(path) if is_lerobot(path) else files_of(path)) for path in paths]


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
    return digest.hexdigest()

# SPDX-License-Identifier: Apache-2.0
"""Recorded episodes: what tasks and bags produce, and policies are trained on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from adahi_ros.core.files import LARGEST_RECORDING, check_size, parse_json
from adahi_ros.core.written_files import replacing

KINDS: dict[str, tuple[type[np.generic], int]] = {  # type and rank in the file
    "observations": (np.float32, 2),
    "actions": (np.float32, 2),
    "goals": (np.float32, 2),
    "ends": (np.int64, 1),
}
IMAGE_FEATURES, LABELS = "image_features", "labels"
OPTIONAL: dict[str, tuple[type[np.generic], ...]] = {
    IMAGE_FEATURES: (np.float32, np.uint8),
    LABELS: (np.float32,),
}
"""Matrices that a file may have, and their types."""
NO_FEATURES = np.zeros((0, 0), dtype=np.float32)


@dataclass(frozen=True)
class Trajectories:
    """E episodes of T_e steps each, concatenated; T is the sum of the T_e.

    Attributes:
        task: name of the task they were recorded on.
        observations: (T, O) float32.
        actions: (T, A) float32, the action taken at each observation.
        goals: (E, G) float32; G is 0 for a task without a goal.
        ends: (E,) int64, one past the last step of each episode.
        image_features: (T, F) float32, of images that only the target reads; F is 0 without any. Where they
            are an image's pixels, uint8.
        labels: (T, L) float32, known only to the simulator, to learn beside the actions; L is 0 without any.
    """

    task: str
    observations: np.ndarray
    actions: np.ndarray
    goals: np.ndarray
    ends: np.ndarray
    image_features: np.ndarray = field(default_factory=lambda: NO_FEATURES)
    labels: np.ndarray = field(default_factory=lambda: NO_FEATURES)

    def __post_init__(self) -> None:
        steps = len(self.observations)
        for name in OPTIONAL:
            if getattr(self, name) is NO_FEATURES:
                object.__setattr__(self, name, np.zeros((steps, 0), dtype=np.float32))
            if len(getattr(self, name)) != steps:
                raise ValueError(f"{name}: {len(getattr(self, name))} rows, observations has {steps}")
        if len(self.actions) != steps:
            raise ValueError(f"actions: {len(self.actions)} rows, observations has {steps}")
        if len(self.goals) != len(self.ends):
            raise ValueError(f"goals: {len(self.goals)} rows, ends has {len(self.ends)}")
        if len(self.ends) == 0 or self.ends[-1] != steps or np.any(np.diff(self.ends, prepend=0) <= 0):
            raise ValueError(f"ends: must increase from above 0 up to {steps}, the number of steps")
        for name in ("observations", "actions", "goals", *OPTIONAL):
            if not np.all(np.isfinite(getattr(self, name))):
                raise ValueError(f"{name}: holds values that are not finite")

    def __len__(self) -> int:
        return len(self.ends)

    @classmethod
    def joined(cls, parts: Sequence[Trajectories]) -> Trajectories:
        """Return all episodes of at least one recording of a task."""
        names = "observations", "actions", "goals", *OPTIONAL
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        lengths = [np.diff(part.ends, prepend=0) for part in parts]
        return cls(parts[0].task, ends=np.cumsum(np.concatenate(lengths)), **arrays)

    def spans(self) -> Iterator[tuple[int, int]]:
        """Yield each episode's first step and one past its last."""
        start = 0
        for end in self.ends.tolist():
            yield start, end
            start = end

    def episodes(self, numbers: Sequence[int]) -> Trajectories:
        """Return some episodes, by their numbers from 0, in that order; at least one."""
        spans = list(self.spans())
        rows = np.concatenate([np.arange(*spans[number]) for number in numbers])
        ends = np.cumsum([spans[number][1] - spans[number][0] for number in numbers])
        return self._with_rows(rows, self.goals[list(numbers)], ends)

    def where(self, kept: np.ndarray) -> Trajectories:
        """Return the steps of a mask (T,), at least one; episodes without steps are removed."""
        counts = [int(kept[start:end].sum()) for start, end in self.spans()]
        some = np.array(counts) > 0
        return self._with_rows(kept, self.goals[some], np.cumsum(counts)[some])

    def _with_rows(self, rows: np.ndarray, goals: np.ndarray, ends: np.ndarray) -> Trajectories:
        parts = self.observations[rows], self.actions[rows]
        return Trajectories(self.task, *parts, goals, ends, self.image_features[rows], self.labels[rows])

    @property
    def inputs(self) -> np.ndarray:
        """(T, O + F) float32, the input of a policy that reads everything."""
        return np.concatenate([self.observations, self.image_features], axis=1)

    def without_images(self) -> Trajectories:
        """Return them without images and labels, where the images are for the target alone."""
        return replace(self, image_features=NO_FEATURES, labels=NO_FEATURES)

    def without_goals(self) -> Trajectories:
        """Return them without goals."""
        return replace(self, goals=self.goals[:, :0])

    def save(self, path: Path) -> None:
        """Write a safetensors file."""
        kinds = {name: kind for name, (kind, _) in KINDS.items()}
        for name, allowed in OPTIONAL.items():
            values = getattr(self, name)
            if values.shape[1]:
                kinds[name] = values.dtype.type if values.dtype in allowed else np.float32
        tensors = {name: np.ascontiguousarray(getattr(self, name), kind) for name, kind in kinds.items()}
        with replacing(path) as partial:
            save_file(tensors, partial, metadata={"adahi": json.dumps({"task": self.task})})

    @classmethod
    def load(cls, path: Path) -> Trajectories:
        """Read a file of `save`.

        Raises:
            FileNotFoundError: no such file.
            ValueError: the file is no recording; the message has the reason.
        """
        if not path.is_file():
            raise FileNotFoundError(f"no recorded episodes at {path}")
        try:
            check_size(path, LARGEST_RECORDING)
            with safe_open(path, framework="numpy") as file:
                task = parse_json((file.metadata() or {})["adahi"])["task"]
                there = [name for name in OPTIONAL if name in file.keys()]
                tensors = {name: file.get_tensor(name) for name in (*KINDS, *there)}
            if not isinstance(task, str):
                raise ValueError(f"task: {task!r}, must be a name")
            for name, found in tensors.items():
                allowed, rank = OPTIONAL.get(name, ()), 2
                if name in KINDS:
                    allowed, rank = KINDS[name][:1], KINDS[name][1]
                if found.dtype.type not in allowed or found.ndim != rank:
                    raise ValueError(
                        f"{name}: {found.dtype} {found.shape}, must be {allowed[0].__name__} of {rank} "
                        "dimensions"
                    )
            return cls(task, **tensors)
        except (SafetensorError, OSError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: not recorded episodes ({error})") from error

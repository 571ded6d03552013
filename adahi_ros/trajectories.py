"""Recorded episodes: what tasks and bags produce, and policies are trained on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from adahi_ros.files import LARGEST_RECORDING, check_size, parse_json, replacing

KINDS: dict[str, tuple[type[np.generic], int]] = {  # type and rank, as they are written
    "observations": (np.float32, 2),
    "actions": (np.float32, 2),
    "goals": (np.float32, 2),
    "ends": (np.int64, 1),
}


@dataclass(frozen=True)
class Trajectories:
    """E episodes of T_e steps each, concatenated; T is the sum of the T_e.

    Attributes:
        task: name of the task they were recorded on.
        observations: (T, O) float32.
        actions: (T, A) float32, the action taken at each observation.
        goals: (E, G) float32; G is 0 for a task without a goal.
        ends: (E,) int64, one past the last step of each episode.
    """

    task: str
    observations: np.ndarray
    actions: np.ndarray
    goals: np.ndarray
    ends: np.ndarray

    def __post_init__(self) -> None:
        steps = len(self.observations)
        if len(self.actions) != steps:
            raise ValueError(f"actions: {len(self.actions)} rows, observations has {steps}")
        if len(self.goals) != len(self.ends):
            raise ValueError(f"goals: {len(self.goals)} rows, ends has {len(self.ends)}")
        if len(self.ends) == 0 or self.ends[-1] != steps or np.any(np.diff(self.ends, prepend=0) <= 0):
            raise ValueError(f"ends: must increase from above 0 up to {steps}, the number of steps")
        for name in ("observations", "actions", "goals"):
            if not np.all(np.isfinite(getattr(self, name))):
                raise ValueError(f"{name}: holds values that are not finite")

    def __len__(self) -> int:
        return len(self.ends)

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
        goals = self.goals[list(numbers)]
        return Trajectories(self.task, self.observations[rows], self.actions[rows], goals, ends)

    def without_goals(self) -> Trajectories:
        """Return what one sees of these who is not told where to go."""
        return replace(self, goals=self.goals[:, :0])

    def save(self, path: Path) -> None:
        """Write a safetensors file."""
        tensors: dict[str, np.ndarray] = {
            "observations": np.ascontiguousarray(self.observations, dtype=np.float32),
            "actions": np.ascontiguousarray(self.actions, dtype=np.float32),
            "goals": np.ascontiguousarray(self.goals, dtype=np.float32),
            "ends": np.ascontiguousarray(self.ends, dtype=np.int64),
        }
        with replacing(path) as partial:
            save_file(tensors, partial, metadata={"adahi": json.dumps({"task": self.task})})

    @classmethod
    def load(cls, path: Path) -> Trajectories:
        """Read what `save` wrote.

        Raises:
            FileNotFoundError: no such file.
            ValueError: the file is not such a recording; the message names what is wrong.
        """
        if not path.is_file():
            raise FileNotFoundError(f"no recorded episodes at {path}; make them with 'adahi demos'")
        try:
            check_size(path, LARGEST_RECORDING)
            with safe_open(path, framework="numpy") as file:
                task = parse_json((file.metadata() or {})["adahi"])["task"]
                tensors = {name: file.get_tensor(name) for name in KINDS}
            if not isinstance(task, str):
                raise ValueError(f"task: {task!r}, must be a name")
            for name, (kind, rank) in KINDS.items():
                found = tensors[name]
                if (found.dtype, found.ndim) != (kind, rank):
                    raise ValueError(
                        f"{name}: {found.dtype} {found.shape}, must be {kind.__name__} of {rank} dimensions"
                    )
            return cls(task, **tensors)
        except (SafetensorError, OSError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: not recorded episodes ({error})") from error

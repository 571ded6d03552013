# SPDX-License-Identifier: Apache-2.0
"""Recorded demonstrations in Minari's format, such as the human ones in D4RL/kitchen/complete-v2.

Minari (Younis et al., 2024, https://minari.farama.org) stores datasets by id in the folder
MINARI_DATASETS_PATH, and downloads them from its server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.tasks import make
from adahi_lab.tasks.demonstrations import Demonstrations
from adahi_lab.tasks.task_interface import TaskSpec

ID = re.compile(r"\w\S*-v\d+")  # a namespace or several, a name and a version


@dataclass(frozen=True)
class Source:
    """How the datasets of a task differ from its units and names.

    Attributes:
        observation_key: of the observations, where they are a dictionary.
        goal_key: of the goals there, for a task that has one.
        action_factor: factor of a recorded action.
    """

    observation_key: str = "observation"
    goal_key: str = "desired_goal"
    action_factor: float = 1.0


SOURCES: dict[str, Source] = {
    "kitchen": Source(action_factor=2.0),  # FrankaKitchen-v1's actions are in shares of 2 rad/s
}


def load_minari(dataset: str, task: str) -> Demonstrations:
    """Read demonstrations from a Minari dataset; all are kept, without a check of success.

    Observations are a box of O + G entries, the goal last, or
    a dictionary with a box for each (see `SOURCES`). A goal is taken from an episode's first step.

    Args:
        dataset: Minari's id, downloaded where it is not stored, or the folder of a dataset.
        task: what the demonstrations are of, as `make` takes it.

    Raises:
        ImportError: Minari, or what it needs for this dataset, is not installed.
        FileNotFoundError: there is no such folder and no such dataset, or it cannot be downloaded.
        ValueError: the folder is not of a dataset; or an episode does not fit the task or is not
            finite, and the message names dataset, episode and field.
    """
    spec = make(task).spec
    source = SOURCES.get(spec.name, Source())
    observations, actions, goals = [], [], []
    for episode in _open(dataset):
        where = f"{dataset}: episode {episode.id}"
        observed, goal = _observed(episode.observations, spec, source, where)
        acted = _box(episode.actions, spec.action_dim, f"{where}: actions")
        if len(observed) != len(acted) + 1 or len(acted) == 0:
            raise ValueError(
                f"{where}: observations: {len(observed)} rows, expected one more than actions, "
                f"which are {len(acted)} and must be at least 1"
            )
        observations.append(observed[:-1])  # the last one is what the last action led to
        actions.append(source.action_factor * acted)
        goals.append(goal[0])
    if not actions:
        raise ValueError(f"{dataset}: episodes: none, expected at least one")
    trajectories = Trajectories(
        task=spec.name,
        observations=np.concatenate(observations).astype(np.float32),
        actions=np.concatenate(actions).astype(np.float32),
        goals=np.stack(goals).astype(np.float32),
        ends=np.cumsum([len(rows) for rows in actions]),
    )
    return Demonstrations(trajectories, attempted=len(actions), failed=0)


def _open(dataset: str) -> Any:
    try:
        import minari
    except ImportError as error:
        raise ImportError(
            f"{dataset}: needs Minari; install it with 'pip install minari[hdf5,hf]'"
        ) from error
    folder = Path(dataset).expanduser()
    if folder.is_dir():
        try:
            return minari.MinariDataset(folder / "data" if (folder / "data").is_dir() else folder)
        except Exception as error:  # Minari may raise anything for other files
            raise ValueError(f"{dataset}: not the folder of a Minari dataset ({_reason(error)})") from error
    if not ID.fullmatch(dataset):
        raise FileNotFoundError(
            f"{dataset}: no such folder, and no id of a Minari dataset, such as 'D4RL/kitchen/complete-v2'"
        )
    try:
        return minari.load_dataset(dataset, download=True)
    except ImportError as error:
        raise ImportError(f"{dataset}: Minari cannot load or download it: {_reason(error)}") from error
    except ValueError as error:  # from Minari: no such dataset or version
        raise FileNotFoundError(
            f"{dataset}: not stored here nor on Minari's server ({_reason(error)})"
        ) from error
    except Exception as error:  # the client of Minari's server may raise anything
        raise FileNotFoundError(
            f"{dataset}: not stored here and cannot be downloaded ({_reason(error)}); run 'minari download "
            f"{dataset}' where there is internet and give the folder it is in"
        ) from error


def _reason(error: Exception) -> str:
    """Return an error's message on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _observed(values: object, spec: TaskSpec, source: Source, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return (T + 1, O) and (T + 1, G)."""
    if not isinstance(values, Mapping):
        rows = _box(values, spec.observation_dim + spec.goal_dim, f"{where}: observations")
        return rows[:, : spec.observation_dim], rows[:, spec.observation_dim :]
    wanted = {source.observation_key: spec.observation_dim}
    if spec.goal_dim > 0:
        wanted[source.goal_key] = spec.goal_dim
    boxes = {}
    for key, width in wanted.items():
        if key not in values:
            there = ", ".join(sorted(values))
            raise ValueError(f"{where}: observations: no {key!r}, which must be one of {there}")
        boxes[key] = _box(values[key], width, f"{where}: {key}")
    observed = boxes[source.observation_key]
    return observed, boxes.get(source.goal_key, np.zeros((len(observed), 0)))


def _box(values: object, width: int, where: str) -> np.ndarray:
    if not isinstance(values, np.ndarray):
        raise ValueError(f"{where}: a {type(values).__name__}, expected a box of {width} entries")
    if values.ndim != 2 or values.shape[1] != width:
        raise ValueError(f"{where}: shape {values.shape}, expected (steps, {width})")
    if not np.all(np.isfinite(values)):
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(
            f"{where}: {values[row, column]} at step {row}, entry {column}, expected finite numbers"
        )
    return values

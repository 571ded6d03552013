# SPDX-License-Identifier: Apache-2.0
"""Recorded episodes from a LeRobotDataset of format 3, read without LeRobot.

    meta/info.json                          the features
    meta/episodes/chunk-*/file-*.parquet    first and last row of each episode
    data/chunk-*/file-*.parquet             the rows, a column per feature

Numbers are read here, images and videos are not.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adahi_lab.datasets.dataset_rows import parquet_file, parts_of
from adahi_lab.datasets.trajectories import Trajectories
from adahi_ros.core.files import read_json

if TYPE_CHECKING:
    import pyarrow

INFO = "meta/info.json"
OBSERVATIONS = ("observation.state", "observation.environment_state")
ACTION = "action"
INTERVENTION = "intervention"
"""Whether a person drove in a row: bool, (1,). So LeRobot 0.6.1 names it (lerobot/rollout/context.py) in what
its rollouts with the strategy `dagger` write (lerobot/rollout/strategies/dagger.py)."""
FORMAT = "v3."
MOST_NUMBERS = 100_000_000  # of a file; each takes tens of bytes while it is read
BOUNDS = ("episode_index", "dataset_from_index", "dataset_to_index")


def load_dataset(folder: Path, task: str, observations: Sequence[str] | None = None) -> Trajectories:
    """Read a LeRobotDataset; episodes have no goals.

    Other observations, most of all images, are left out, and a warning names them.

    Args:
        folder: of the dataset, with `meta` and `data` in it.
        task: noted in the trajectories.
        observations: features of an observation, in this order; None takes those of `OBSERVATIONS`
            that the dataset has.

    Raises:
        ImportError: pyarrow is not installed.
        FileNotFoundError: the dataset or a part of it is missing.
        ValueError: it has another format, is damaged, or lacks a feature; the message names file, field
            and what was expected.
    """
    info_path = folder / INFO
    info = read_info(info_path)
    features = info["features"]
    if observations is None:
        observations = [name for name in OBSERVATIONS if name in features]
    if not observations:
        raise ValueError(f"{info_path}: features: none of {', '.join(OBSERVATIONS)}, expected at least one")
    widths = {name: width_of(features, name, info_path) for name in (*observations, ACTION)}
    left_out = [name for name in features if name.startswith("observation") and name not in widths]
    if left_out:
        warnings.warn(f"{folder}: left out of the observations: {', '.join(left_out)}", stacklevel=2)
    ends = _ends(folder)
    columns = read_columns(folder, {"index": 1, "episode_index": 1, **widths})
    _check_order(columns, ends, folder)
    return Trajectories(
        task=task,
        observations=np.concatenate([columns[name] for name in observations], axis=1).astype(np.float32),
        actions=columns[ACTION].astype(np.float32),
        goals=np.zeros((len(ends), 0), dtype=np.float32),
        ends=ends,
    )


def read_info(path: Path) -> dict[str, Any]:
    """Return the description of a dataset, with a mapping `features`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no description, or of another format; names file and field.
    """
    try:
        info = read_json(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file; expected the folder of a LeRobotDataset") from None
    if not isinstance(info.get("features"), dict):
        raise ValueError(f"{path}: features: missing, must be a mapping")
    version = info.get("codebase_version")
    if not str(version).startswith(FORMAT):
        raise ValueError(
            f"{path}: codebase_version: {version!r}, must be {FORMAT}x; LeRobot's "
            f"convert_dataset_v21_to_v30 makes it of v2.1"
        )
    return info


def width_of(features: dict[str, Any], name: str, path: Path) -> int:
    """Return the number of entries of a feature."""
    if name not in features:
        raise ValueError(f"{path}: features: no {name!r}, there are {', '.join(sorted(features))}")
    feature = features[name]
    shape = feature.get("shape") if isinstance(feature, dict) else None
    if not isinstance(shape, list) or len(shape) != 1 or not isinstance(shape[0], int) or shape[0] < 1:
        raise ValueError(f"{path}: features: {name}: shape: {shape!r}, must be of one size from 1")
    if not str(feature.get("dtype")).startswith(("float", "int", "uint")):
        raise ValueError(f"{path}: features: {name}: dtype: {feature.get('dtype')!r}, must be of numbers")
    return shape[0]


def _ends(folder: Path) -> np.ndarray:
    """Return one past the last row of each episode: (E,) int64."""
    rows = read_columns(folder, dict.fromkeys(BOUNDS, 1), "meta/episodes")
    episodes, starts, ends = (rows[name][:, 0].astype(np.int64) for name in BOUNDS)
    order = np.argsort(episodes)
    starts, ends = starts[order], ends[order]
    if (episodes[order] != np.arange(len(episodes))).any():
        raise ValueError(
            f"{folder / 'meta/episodes'}: episode_index: must number the episodes from 0, each once"
        )
    if (starts != np.concatenate([[0], ends[:-1]])).any() or (starts >= ends).any():
        raise ValueError(
            f"{folder / 'meta/episodes'}: dataset_from_index, dataset_to_index: must be of at least one row, "
            f"each episode's from where the one before it ends"
        )
    return ends


def _check_order(columns: dict[str, np.ndarray], ends: np.ndarray, folder: Path) -> None:
    rows = columns["index"][:, 0]
    if len(rows) != ends[-1] or (rows != np.arange(len(rows))).any():
        raise ValueError(
            f"{folder / 'data'}: index: must count {ends[-1]} rows from 0, as meta/episodes says"
        )
    episodes = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    if (columns["episode_index"][:, 0] != episodes).any():
        row = int(np.argmax(columns["episode_index"][:, 0] != episodes))
        raise ValueError(
            f"{folder / 'data'}: episode_index: {columns['episode_index'][row, 0]:g} in row {row}, must be "
            f"{episodes[row]}, as meta/episodes says"
        )


def read_columns(folder: Path, widths: dict[str, int], part: str = "data") -> dict[str, np.ndarray]:
    """Read columns (T, width) of all the files of a part, in the order of their names.

    Raises:
        ImportError: pyarrow is not installed.
        FileNotFoundError: there are no files.
        ValueError: a file is damaged, or lacks a column; names both.
    """
    tables = [(path, _read_table(path, list(widths))) for path in parts_of(folder, part)]
    return {
        name: np.concatenate([_numbers(table, name, width, path) for path, table in tables])
        for name, width in widths.items()
    }


def _read_table(path: Path, names: list[str]) -> pyarrow.Table:
    with parquet_file(path) as file:
        groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
        chunks = [group.column(index) for group in groups for index in range(group.num_columns)]
        prefixes = tuple(f"{name}." for name in names)  # the path of lists is longer
        numbers = sum(each.num_values for each in chunks if f"{each.path_in_schema}.".startswith(prefixes))
        if numbers > MOST_NUMBERS:  # a run of one number takes no room in the file
            raise OSError(f"{numbers} numbers, must be at most {MOST_NUMBERS}")
        table = file.read(columns=names)
    for name in names:
        if name not in table.column_names:
            raise ValueError(f"{path}: {name}: missing, must be a column")
    return table


def _numbers(table: pyarrow.Table, name: str, width: int, path: Path) -> np.ndarray:
    """Return a column (T, width); LeRobot stores a single entry as a number, several as a list."""
    try:
        values = np.array(table[name].to_pylist(), dtype=np.float64).reshape(len(table), -1)
    except (TypeError, ValueError):
        raise ValueError(f"{path}: {name}: must be {width} numbers in every row") from None
    if values.shape[1] != width:
        raise ValueError(f"{path}: {name}: {values.shape[1]} numbers a row, must be {width}")
    if not np.isfinite(values).all():
        row, entry = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(f"{path}: {name}: {values[row, entry]} in row {row}, entry {entry}, must be finite")
    return values

# SPDX-License-Identifier: Apache-2.0
"""Recorded episodes as a LeRobotDataset of format 3, for LeRobot's trainer; written without LeRobot.

meta/info.json                              the features
meta/stats.json                             their distributions
meta/tasks.parquet                          the sentence of each task
meta/episodes/chunk-000/file-000.parquet    first and last row of each episode, and its distribution
data/chunk-000/file-000.parquet             the rows, a column per feature
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from adahi_lab.datasets.dataset_rows import INDEX, TASKS
from adahi_lab.datasets.lerobot_dataset import ACTION, BOUNDS, INFO
from adahi_lab.datasets.trajectories import Trajectories
from adahi_ros.core.written_files import replacing, save_json

if TYPE_CHECKING:
    import pyarrow

STATE, ENVIRONMENT = "observation.state", "observation.environment_state"
PLACE = "chunk-000/file-000.parquet"
QUANTILES = (1, 10, 50, 90, 99)  # percent
Column = Mapping[str, np.ndarray]


def save_dataset(folder: Path, data: Trajectories, fps: float, joints: int, sentence: str) -> None:
    """Write a dataset.

    `observation.state` holds the joints of the observation, or all of it where there are none.
    `observation.environment_state` holds the other inputs of a policy: the rest of the observation, and the
    goal.

    Args:
        folder: to write; must not exist.
        data: without images.
        fps: control steps per second.
        joints: number of leading observation entries that are of the robot itself; 0 for all.
        sentence: the task description of all episodes.

    Raises:
        ImportError: pyarrow is not installed.
        FileExistsError: the folder exists.
        ValueError: names the argument, its value and what was allowed.
    """
    width = data.observations.shape[1]
    if not 0 <= joints <= width:
        raise ValueError(f"joints: {joints}, must be from 0 to {width}, the numbers of an observation")
    if not 0 < fps < np.inf:
        raise ValueError(f"fps: {fps}, must be above 0 and finite")
    if folder.exists():
        raise FileExistsError(f"{folder}: is there already, must be a new folder")
    lengths = np.diff(data.ends, prepend=0)
    goals = np.repeat(data.goals, lengths, axis=0)
    own = joints or width
    rest = np.concatenate([data.observations[:, own:], goals], axis=1)
    frames = np.concatenate([np.arange(length) for length in lengths])
    columns: dict[str, np.ndarray] = {STATE: data.observations[:, :own]}
    if rest.shape[1]:
        columns[ENVIRONMENT] = rest
    columns |= {
        ACTION: data.actions,
        "timestamp": (frames / fps).astype(np.float32)[:, None],
        "frame_index": frames[:, None],
        "episode_index": np.repeat(np.arange(len(data)), lengths)[:, None],
        "index": np.arange(len(frames))[:, None],
        "task_index": np.zeros((len(frames), 1), dtype=np.int64),
    }
    _write_table(folder / "data" / PLACE, columns)
    _write_episodes(folder / "meta/episodes" / PLACE, data, columns, sentence)
    _write_sentences(folder / TASKS, sentence)
    save_json(folder / "meta/stats.json", {name: _distribution(each) for name, each in columns.items()})
    save_json(folder / INFO, _info(data, columns, fps))  # last: without it, there is no dataset


def _info(data: Trajectories, columns: Column, fps: float) -> dict[str, object]:
    return {
        "codebase_version": "v3.0",
        "robot_type": data.task,
        "total_episodes": len(data),
        "total_frames": len(data.observations),
        "total_tasks": 1,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": int(fps) if fps == int(fps) else fps,
        "splits": {"train": f"0:{len(data)}"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": None,
        "features": {
            name: {"dtype": each.dtype.name, "shape": [each.shape[1]], "names": None}
            for name, each in columns.items()
        },
    }


def _write_table(path: Path, columns: Column) -> None:
    """Write columns (T, width): lists of one length, or numbers for width 1, as LeRobot stores them."""
    import pyarrow as pa

    arrays = {}
    for name, each in columns.items():
        flat = pa.array(each.ravel())
        width = each.shape[1]
        arrays[name] = flat if width == 1 else pa.FixedSizeListArray.from_arrays(flat, width)
    _write(path, pa.table(arrays))


def _write_episodes(path: Path, data: Trajectories, columns: Column, sentence: str) -> None:
    import pyarrow as pa

    rows = []
    for number, (start, end) in enumerate(data.spans()):
        row: dict[str, Any] = dict(zip(BOUNDS, (number, start, end), strict=True))
        row |= {"tasks": [sentence], "length": end - start}
        row |= {"data/chunk_index": 0, "data/file_index": 0}
        row |= {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}
        for name, each in columns.items():
            statistics = _distribution(each[start:end])
            row |= {f"stats/{name}/{measure}": values for measure, values in statistics.items()}
        rows.append(row)
    _write(path, pa.Table.from_pylist(rows))


def _write_sentences(path: Path, sentence: str) -> None:
    import pyarrow as pa

    table = pa.table({"task_index": pa.array([0], pa.int64()), INDEX: [sentence]})
    description = {
        "index_columns": [INDEX],
        "column_indexes": [_pandas(None, None, "unicode", "object")],
        "columns": [
            _pandas("task_index", "task_index", "int64", "int64"),
            _pandas(None, INDEX, "unicode", "object"),
        ],
        "pandas_version": "2.0.0",
    }
    _write(path, table.replace_schema_metadata({"pandas": json.dumps(description)}))


def _pandas(name: str | None, column: str | None, kind: str, stored: str) -> dict[str, object]:
    """Describe a column as pandas does in the metadata of its files."""
    return {
        "name": name,
        "field_name": column,
        "pandas_type": kind,
        "numpy_type": stored,
        "metadata": None,
    }


def _write(path: Path, table: pyarrow.Table) -> None:
    import pyarrow.parquet as pq

    with replacing(path) as partial:
        pq.write_table(table, partial)


def _distribution(values: np.ndarray) -> dict[str, list[float]]:
    """Return the distribution of numbers (T, width), by LeRobot's names."""
    marks = np.percentile(values, QUANTILES, axis=0)
    return {
        "min": values.min(axis=0).tolist(),
        "max": values.max(axis=0).tolist(),
        "mean": values.mean(axis=0, dtype=np.float64).tolist(),
        "std": values.std(axis=0, dtype=np.float64).tolist(),
        "count": [len(values)],
        **{f"q{mark:02d}": row.tolist() for mark, row in zip(QUANTILES, marks, strict=True)},
    }

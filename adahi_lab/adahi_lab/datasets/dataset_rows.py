# SPDX-License-Identifier: Apache-2.0
"""Parquet files of a LeRobotDataset, a row at a time: instructions and stored images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from adahi_ros.core.files import LARGEST_RECORDING, check_size
from adahi_ros.core.texts import INSTRUCTION_LENGTH

if TYPE_CHECKING:
    import pyarrow.parquet

TASKS = "meta/tasks.parquet"
INDEX = "__index_level_0__"  # pandas's name of a nameless index; LeRobot reads the sentences with pandas
INSTRUCTIONS = ("task", INDEX)  # the column, by LeRobot's version
MOST_TASKS = 10_000


@contextmanager
def parquet_file(path: Path) -> Iterator[pyarrow.parquet.ParquetFile]:
    """Open a Parquet file.

    Raises:
        ImportError: pyarrow is not installed.
        ValueError: it is damaged, too large, or no such file.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"{path}: needs pyarrow; install it with 'pip install pyarrow'") from None
    try:
        check_size(path, LARGEST_RECORDING)
        with pyarrow.parquet.ParquetFile(path) as file:
            yield file
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{path}: not a Parquet file ({' '.join(str(error).split())})") from None


def parts_of(folder: Path, part: str = "data") -> list[Path]:
    """Return the files of a part of a dataset, in the order of their rows.

    Raises:
        FileNotFoundError: there are no files.
    """
    paths = sorted((folder / part).glob("*/*.parquet"))
    if not paths:
        raise FileNotFoundError(f"{folder / part}: no chunk-*/file-*.parquet")
    return paths


def columns_of(path: Path) -> list[str]:
    """Return the names of a file's columns; raises as `parquet_file`."""
    with parquet_file(path) as file:
        names: list[str] = file.schema_arrow.names
    return names


def rows_of(path: Path, names: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """Yield these columns of each row of a file; only one row is in memory.

    Raises:
        ImportError: pyarrow is not installed.
        ValueError: it is damaged, or lacks a column; names file and column.
    """
    there = columns_of(path)
    for name in names:
        if name not in there:
            raise ValueError(f"{path}: {name}: missing, must be a column")
    with parquet_file(path) as file:
        for batch in file.iter_batches(batch_size=1, columns=list(names)):
            for row in batch.to_pylist():
                yield tuple(row[name] for name in names)


def read_instructions(folder: Path) -> dict[int, str]:
    """Return the instruction of each task of a dataset, by its `task_index`.

    Raises:
        ImportError: pyarrow is not installed.
        FileNotFoundError: there is no list of tasks.
        ValueError: it is damaged, or has more or longer instructions than allowed; names file and row.
    """
    path = folder / TASKS
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; the target reads an instruction")
    there = columns_of(path)
    column = next((name for name in INSTRUCTIONS if name in there), INSTRUCTIONS[0])
    found: dict[int, str] = {}
    for row, (index, instruction) in enumerate(rows_of(path, ("task_index", column))):
        if row >= MOST_TASKS:
            raise ValueError(f"{path}: more than {MOST_TASKS} tasks, must be at most that")
        if not isinstance(index, int) or not isinstance(instruction, str):
            raise ValueError(
                f"{path}: row {row}: {index!r:.60}, {instruction!r:.60}, must be a number and a text"
            )
        if len(instruction) > INSTRUCTION_LENGTH:
            raise ValueError(
                f"{path}: {column}: {len(instruction)} characters in row {row}, must be at most "
                f"{INSTRUCTION_LENGTH}"
            )
        found[index] = instruction
    return found

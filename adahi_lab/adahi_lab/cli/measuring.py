# SPDX-License-Identifier: Apache-2.0
"""What the verbs that measure methods share: tasks, numbers of episodes, files of rows, progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from adahi_lab.cli import options
from adahi_lab.cli.output import job_bar
from adahi_ros.cli.terminal import say

if TYPE_CHECKING:
    from adahi_lab.evaluation.comparison import Entry, Rows
    from adahi_lab.evaluation.evaluate import Comparison

WHOLE_TASK, POINT = (100, 600), (50, 200)  # episodes: with --quick, and without

Tasks = Annotated[str, Option("--tasks", "--task", help="One, or several separated by commas.")]
Episodes = Annotated[int | None, Option(min=1, help="Per method and task. Default: 600; quick: 100.")]
PointEpisodes = Annotated[int | None, Option(min=1, help="Per point. Default: 200; quick: 50.")]
RowsFile = Annotated[
    Path, Option(help="File of the rows, each written when measured; existing rows are reused.")
]


def comparisons(tasks: str, seed: int, backend: str) -> dict[str, Comparison]:
    """Return the setup of each task: the shipped policies and calibration."""
    from adahi_lab.evaluation.evaluate import Comparison

    names = [name.strip() for name in tasks.split(",") if name.strip()]
    if not names:
        raise ValueError(f"tasks: {tasks!r}, must name at least one")
    found = [Comparison.shipped(task, seed, backend) for task in names]
    for each in found:
        each.world()  # raises errors before hours of work
    return {each.calibration.task: each for each in found}


def episode_count(given: int | None, quick: bool, default: tuple[int, int]) -> int:
    """Return the number of episodes: the given one, else that of --quick or of a whole run."""
    return given if given is not None else default[not quick]


def rows_file(out: Path, json_file: Path | None = None) -> Rows:
    """Open the file of rows.

    Raises:
        ValueError: it cannot be written, has another format, or is the file of the figures.
    """
    from adahi_lab.evaluation.comparison import Rows

    if json_file is not None and json_file.resolve() == out.resolve():
        raise ValueError(f"--json: {json_file}, must be another file than the rows have (--out)")
    return Rows(options.tried("--out", out))


@contextmanager
def row_bar(title: str, total: int) -> Iterator[Callable[[Entry, bool], None]]:
    """Show how many rows are measured; yield the `on_row` of `measure`."""
    with job_bar(title, total) as update:
        yield lambda entry, measured: update(advance=1, note=f"{entry.name}, {entry.kind}")


def say_skipped(task: str, skipped: Mapping[str, str]) -> None:
    """Print why methods were left out on a task."""
    for name, reason in skipped.items():
        say(f"{task}: {name} is left out: {reason}")

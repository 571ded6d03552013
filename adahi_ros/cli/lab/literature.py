# SPDX-License-Identifier: Apache-2.0
"""`adahi table --literature`: the methods of papers in one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from adahi_ros.cli.lab.measuring import row_bar, rows_file, say_skipped
from adahi_ros.cli.terminal import command_line, console, say, write_json

if TYPE_CHECKING:
    from adahi_ros.lab.evaluation.evaluate import Comparison

LITERATURE_TASKS = "kitchen,ball,metaworld"
ROWS, FIGURES, PAGE = "rows.json", "literature.json", "literature.md"


def measure_literature(
    compared: dict[str, Comparison], count: int, workers: int, out: Path, about: dict[str, Any]
) -> None:
    """Measure the table, print it, and write rows, figures and a page; rows that are there are taken.

    Args:
        compared: by task.
        count: episodes per line and task.
        workers: processes.
        out: folder to write into.
        about: what else is written beside the figures.
    """
    from adahi_ros.lab.calibration.thresholds import Thresholds
    from adahi_ros.lab.evaluation.comparison import measure, standings
    from adahi_ros.lab.evaluation.episodes import evaluation_episodes
    from adahi_ros.lab.papers.literature import known_methods, lines
    from adahi_ros.lab.papers.literature_table import line_entries, searched_last
    from adahi_ros.lab.reporting.literature_rows import literature_markdown, literature_table

    known = known_methods()
    rows, table = rows_file(out / ROWS), lines(known)
    numbers = evaluation_episodes(count)
    found: dict[str, Any] = {}
    for task, comparison in compared.items():
        thresholds = Thresholds(out, comparison, workers, say, command_line())
        task_rows: list[dict[str, Any]] = []
        skipped: dict[str, str] = {}
        with row_bar(f"{task}: lines", len(table)) as done:
            # A search may take as long as all other lines.
            for some in searched_last(table, comparison, thresholds):
                wanted, left_out = line_entries(some, comparison, numbers, thresholds)
                task_rows += measure(wanted, rows, workers, done)
                skipped.update(left_out)
        found[task] = {"methods": standings(task_rows, []), "skipped": skipped}
    figures = {task: values["methods"] for task, values in found.items()}
    console.print(literature_table(table, figures, f"{count} episodes, seed {about['seed']}"))
    for task, values in found.items():
        say_skipped(task, values["skipped"])
    for each in known:
        if not each.lines:
            say(f"{each.name} has no line: {each.why}")
    (out / PAGE).write_text(literature_markdown(table, figures))
    write_json(out / FIGURES, {"command": command_line(), "episodes": count, **about, "tasks": found})

# SPDX-License-Identifier: Apache-2.0
"""The methods of papers in one table: the results of each line on each task, on the same episodes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from adahi_lab.calibration.thresholds import Thresholds
from adahi_lab.evaluation.comparison import ITSELF, Entry
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.methods.methods import METHODS, for_task
from adahi_lab.papers.literature import Line


def line_entries(
    lines: Sequence[Line], comparison: Comparison, episodes: Sequence[int], thresholds: Thresholds
) -> tuple[list[Entry], dict[str, str]]:
    """Return the entries to measure for lines on a task, and by key why some cannot be measured.

    Args:
        lines: of the table.
        comparison: of the task.
        episodes: their numbers.
        thresholds: of the task.
    """
    found, skipped = [], {}
    for line in lines:
        try:
            found.append(_entry(line, comparison, episodes, thresholds))
        except (ValueError, FileNotFoundError, ImportError) as error:  # eight bits need the package onnx
            skipped[line.method] = str(error)
    return found, skipped


def searched_last(
    lines: Sequence[Line], comparison: Comparison, thresholds: Thresholds
) -> tuple[list[Line], list[Line]]:
    """Return lines that can be measured at once, and those that first need a threshold search."""
    name, folder = comparison.calibration.task, comparison.files.folder
    last = []
    for line in lines:
        with suppress(ValueError):  # there are no policies for it; `line_entries` says so
            if thresholds.missing([for_task(line.method, name, folder)]):
                last.append(line)
    return [line for line in lines if line not in last], last


def _entry(line: Line, comparison: Comparison, episodes: Sequence[int], thresholds: Thresholds) -> Entry:
    name = comparison.calibration.task
    if line.one_task and name != line.task:
        raise ValueError(f"{line.method} is for the task {line.task}")
    method = for_task(line.method, name, comparison.files.folder)
    on = thresholds.complete([method]).of_method(METHODS[method])
    METHODS[method].threshold(on.bench())
    return Entry(METHODS[method], on, episodes, line.method, ITSELF)

# SPDX-License-Identifier: Apache-2.0
"""The methods of papers in one table, on a terminal or as Markdown: a line each, tasks side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from adahi_lab.figures import Figures
from adahi_lab.papers.literature import Line
from adahi_lab.reporting.tables import narrow_table, number, probability

ByLine = Mapping[str, Figures]
"""Figures by `Line.method`: see `evaluation.standing.standings`."""


def literature_table(lines: Sequence[Line], tasks: Mapping[str, ByLine], title: str) -> Table:
    """Return success with its interval, and TR, of each line; eighty columns wide with three tasks."""
    headings = [head for task in tasks for head in (f"{task[:5]}\nsucc.", "95 %", "TR")]
    table = narrow_table(title, ("method",), headings)
    table.padding = 0
    for line in lines:
        cells = []
        for figures in tasks.values():
            values = figures.get(line.method)
            cells += ["", "", ""] if values is None else _cells(values)
        table.add_row(line.name, *cells)
    return table


def _cells(values: Figures) -> list[str]:
    interval = "-".join(_short(each) for each in values["success_ci95"])
    return [number(values["success_rate"], 2), interval, _short(values["transmission_rate"])]


def _short(share: float) -> str:
    text = number(share, 2)
    return text[1:] if text.startswith("0") else text[:3]


def literature_markdown(lines: Sequence[Line], tasks: Mapping[str, ByLine]) -> str:
    """Return the same, as a table for a page, with p against the reference by McNemar's exact test."""
    heads = ["method", "`--methods`"]
    for task in tasks:
        heads += [f"{task}: success", "TR", "p"]
    rows = []
    for line in lines:
        row = [line.name, f"`{line.method}`"]
        for figures in tasks.values():
            values = figures.get(line.method)
            row += ["", "", ""] if values is None else _formatted(values)
        rows.append(row)
    first, *others = (f"| {' | '.join(row)} |\n" for row in (heads, *rows))
    return "".join((first, f"|{'---|' * len(heads)}\n", *others))


def _formatted(values: Figures) -> list[str]:
    low, high = values["success_ci95"]
    pair = values["against"]
    return [
        f"{number(values['success_rate'], 2)} ({number(low, 2)} to {number(high, 2)})",
        number(values["transmission_rate"]),
        "" if pair is None else probability(pair["p"]),
    ]

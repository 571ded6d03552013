# SPDX-License-Identifier: Apache-2.0
"""The table of a search: each trial's settings, results and costs."""

from __future__ import annotations

from rich.table import Table

from adahi_lab.figures import Figures
from adahi_lab.reporting.tables import narrow_table, number


def tuning_table(figures: Figures) -> Table:
    """Return the trials in `search_figures`, the best first."""
    priced = figures["costs"]["cost"] > 0.0
    total = figures["costs"]
    caption = (
        f"objective: success - {figures['price']:g} x transmission rate, {figures['episodes']} episodes; * "
        f"no other succeeds more often and asks less; in all {total['cpu_s']:.0f} s of cores"
    )
    if priced:
        caption += f", {total['cost']:.4f} at the workers' prices"
    table = narrow_table(
        f"{figures['task']}, {len(figures['trials'])} trials",
        ["trial", "state"],
        ["objective", "success", "TR", "workers", "CPU s", *(["price"] if priced else [])],
        caption,
    )
    table.add_column("tried", overflow="fold")
    for row in sorted(figures["trials"], key=_order):
        mark = "*" if row["number"] in figures["efficient"] else ""
        tried = _tried(row["params"])
        table.add_row(
            f"{row['number']}{mark}",
            row["state"],
            number(row["value"]),
            number(row["figures"].get("success_rate")),
            number(row["figures"].get("transmission_rate")),
            str(row["workers"]),
            number(row["costs"]["cpu_s"], 1),
            *([number(row["costs"]["cost"], 4)] if priced else []),
            f"{tried}; {row['fault']}" if row["fault"] else tried,
        )
    return table


def _order(row: Figures) -> tuple[bool, float, int]:
    return row["value"] is None, -(row["value"] or 0.0), row["number"]


def _tried(params: Figures) -> str:
    """Return a setting in few words: only the end of a path, if unique."""
    ends = [name.rpartition(".")[2] for name in params]
    method, words = params["method"], []
    for name, value in params.items():
        end = name.rpartition(".")[2]
        short = end if ends.count(end) == 1 else name.removeprefix("policies.")
        if name == f"threshold.{method}":
            words.append(f"above {_shown(value)}")
        else:
            words.append(f"{'' if name == 'method' else short + ' '}{_shown(value)}")
    return ", ".join(words)


def _shown(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)

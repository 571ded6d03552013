# SPDX-License-Identifier: Apache-2.0
"""Success and calls against a varied property, or against rounds of learning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from matplotlib.axes import Axes
from rich.table import Table

from adahi_lab.figures import Figures
from adahi_lab.methods.methods import METHODS
from adahi_lab.reporting.style import curve_looks, draw_success, figure, save, titled
from adahi_lab.reporting.tables import narrow_table, number

Curves = Mapping[str, Sequence[Figures]]
"""By method, figures in the order of the varied property."""
AXES = {
    "delay": "delay (control steps)",
    "jitter": "jitter, at most (control steps)",
    "loss": "round trips lost (share)",
    "outage": "mean outage (control steps)",
}


def curve_table(curves: Curves, values: Sequence[float], title: str, rate_hz: float) -> Table:
    """Return success, calls per episode and age of information, a row per method and a column per value."""
    caption = "success (calls an episode; mean age of information in s, and the share of steps held)"
    table = narrow_table(title, ("method",), [f"{value:g}" for value in values], caption)
    for name, rows in curves.items():
        table.add_row(METHODS[name].label, *(_cell(row, rate_hz) for row in rows))
    return table


def _cell(row: Figures, rate_hz: float) -> str:
    shown = f"{row['calls_per_episode']:.1f}"
    if (age := row.get("information_age")) is not None:  # rows of an earlier version have none
        mean = "-" if age["mean"] is None else f"{age['mean'] / rate_hz:.2f}"
        shown += f"; {mean}, {number(row['held_share'])}"
    return f"{number(row['success_rate'])} ({shown})"


def draw_curves(curves: Mapping[str, Curves], values: Sequence[float], axis: str, path: Path) -> None:
    """Draw success with its 95 % interval above, calls per episode below, a column per task."""
    with _success_above_calls(list(curves), axis, path) as columns:
        for (above, below), methods in zip(columns, curves.values(), strict=True):
            for name, rows in methods.items():
                looks = curve_looks(name, METHODS[name].label)
                draw_success(above, values, rows, **looks)
                below.plot(values, [row["calls_per_episode"] for row in rows], **looks)


@contextmanager
def _success_above_calls(titles: Sequence[str], x: str, path: Path) -> Iterator[list[tuple[Axes, Axes]]]:
    """Yield the plots of success and of calls of each column; write the figure at the end."""
    drawn, count = figure(4.6 * len(titles), 6.4), len(titles)
    columns = [
        (
            titled(drawn.add_subplot(2, count, column + 1), title, x, "success rate"),
            titled(drawn.add_subplot(2, count, count + column + 1), title, x, "calls per episode"),
        )
        for column, title in enumerate(titles)
    ]
    yield columns
    for above, below in columns:
        above.set_ylim(-0.03, 1.05)
        below.set_ylim(bottom=0.0)
        above.legend(fontsize=7.5)
    save(drawn, path)

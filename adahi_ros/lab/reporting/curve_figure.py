# SPDX-License-Identifier: Apache-2.0
"""Success and calls against something that is changed step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from adahi_ros.lab.methods.methods import METHODS
from adahi_ros.lab.reporting.style import COLOURS, LINES, MARKERS, figure, save, titled
from adahi_ros.lab.reporting.tables import narrow_table, number

Curves = Mapping[str, Sequence[Mapping[str, Any]]]
"""By method, figures in the order of what they are against."""
AXES = {
    "delay": "delay (control steps)",
    "jitter": "jitter, at most (control steps)",
    "loss": "round trips lost (share)",
    "outage": "mean outage (control steps)",
}


def curve_table(curves: Curves, values: Sequence[float], title: str) -> Table:
    """Return success of each method, and in brackets calls per episode, a column per value."""
    caption = "success, and calls an episode"
    table = narrow_table(title, ("method",), [f"{value:g}" for value in values], caption)
    for name, rows in curves.items():
        shown = [f"{number(row['success_rate'])} ({row['calls_per_episode']:.1f})" for row in rows]
        table.add_row(METHODS[name].label, *shown)
    return table


def draw_curves(curves: Mapping[str, Curves], values: Sequence[float], against: str, path: Path) -> None:
    """Draw success with its 95 % interval above, calls per episode below, a column per task."""
    drawn = figure(4.6 * len(curves), 6.4)
    for column, (task, methods) in enumerate(curves.items()):
        above, below = (drawn.add_subplot(2, len(curves), row * len(curves) + column + 1) for row in (0, 1))
        titled(above, task, AXES[against], "success rate")
        titled(below, task, AXES[against], "calls per episode")
        for name, rows in methods.items():
            looks: dict[str, Any] = {
                "color": COLOURS[name],
                "marker": MARKERS[name],
                "markersize": 4,
                "linestyle": LINES.get(name, "-"),
                "label": METHODS[name].label,
            }
            low, high = np.array([row["success_ci95"] for row in rows]).T
            above.fill_between(values, low, high, color=COLOURS[name], alpha=0.12, linewidth=0)
            above.plot(values, [row["success_rate"] for row in rows], **looks)
            below.plot(values, [row["calls_per_episode"] for row in rows], **looks)
        above.set_ylim(-0.03, 1.05)
        below.set_ylim(bottom=0.0)
        above.legend(fontsize=7.5)
    save(drawn, path)

# SPDX-License-Identifier: Apache-2.0
"""What became of a robot that learned in rounds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from adahi_ros.lab.reporting.style import figure, save, titled
from adahi_ros.lab.reporting.tables import narrow_table, number


def learning_table(figures: Mapping[str, Any]) -> Table:
    """Return a row of every round: success and calls an episode of each look, and what of an update stood."""
    looks = list(figures["rounds"][0]["looks"])
    caption = "success, and calls an episode; learned: share of the update that was taken"
    title = f"{figures['task']}, {figures['how']['rounds']} rounds"
    table = narrow_table(title, ("round",), [*looks, "replies", "learned"], caption)
    for each in figures["rounds"]:
        found = [each["looks"][name] for name in looks]
        cells = [f"{number(one['success_rate'])} ({one['calls_per_episode']:.1f})" for one in found]
        told = each.get("update", {})
        share = f"{told['share']:.3g}" if told else ""
        table.add_row(str(each["round"]), *cells, str(told.get("new", "")), share)
    return table


def draw_learning(runs: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw success with its 95 % interval above, calls per episode below, a column for each run."""
    drawn = figure(4.6 * len(runs), 6.4)
    for column, (title, figures) in enumerate(runs.items()):
        above, below = (drawn.add_subplot(2, len(runs), row * len(runs) + column + 1) for row in (0, 1))
        titled(above, title, "round", "success rate")
        titled(below, title, "round", "calls per episode")
        rounds = figures["rounds"]
        at = np.arange(len(rounds))
        for index, name in enumerate(rounds[0]["looks"]):
            colour, looks = f"C{index}", [each["looks"][name] for each in rounds]
            low, high = np.array([each["success_ci95"] for each in looks]).T
            above.fill_between(at, low, high, color=colour, alpha=0.12, linewidth=0)
            above.plot(at, [each["success_rate"] for each in looks], color=colour, label=name)
            below.plot(at, [each["calls_per_episode"] for each in looks], color=colour)
        above.set_ylim(-0.03, 1.05)
        below.set_ylim(bottom=0.0)
        above.legend(fontsize=7.5)
    save(drawn, path)

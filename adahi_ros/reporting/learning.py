"""What became of a draft that learned in rounds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from adahi_ros.reporting.style import figure, save, titled
from adahi_ros.reporting.tables import narrow_table, number

LOOKS = {
    "at_threshold": ("threshold as it was", "C0"),
    "at_rate": ("threshold at the rate", "C1"),
    "draft": ("draft alone", "C2"),
}
"""By how a draft is looked at, what it is called and its colour."""


def learning_table(figures: Mapping[str, Any]) -> Table:
    """Return a row of every round: success, calls an episode, and what of an update stood."""
    shown = [name for name in LOOKS if name in figures["rounds"][0]]
    columns = [*(LOOKS[name][0] for name in shown), "accepted", "replies", "learned"]
    caption = (
        "success, and calls an episode; accepted: share of first codes that the target keeps; learned: share "
        "of the update that was taken"
    )
    table = narrow_table(
        f"{figures['task']}, {figures['how']['rounds']} rounds", ("round",), columns, caption
    )
    for each in figures["rounds"]:
        cells = [
            f"{number(each[name]['success_rate'])} ({each[name]['calls_per_episode']:.1f})" for name in shown
        ]
        told = each.get("update", {})
        kept = number(1.0 - each["at_threshold"]["rejection_rate"][0])
        stood = f"{told['share']:.3g}" if told else ""
        table.add_row(str(each["round"]), *cells, kept, str(told.get("new", "")), stood)
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
        for name, (label, colour) in LOOKS.items():
            if name not in rounds[0]:
                continue
            low, high = np.array([each[name]["success_ci95"] for each in rounds]).T
            above.fill_between(at, low, high, color=colour, alpha=0.12, linewidth=0)
            above.plot(at, [each[name]["success_rate"] for each in rounds], color=colour, label=label)
            if name != "draft":
                below.plot(at, [each[name]["calls_per_episode"] for each in rounds], color=colour)
        above.set_ylim(-0.03, 1.05)
        below.set_ylim(bottom=0.0)
        above.legend(fontsize=7.5)
    save(drawn, path)

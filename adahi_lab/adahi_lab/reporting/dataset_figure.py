# SPDX-License-Identifier: Apache-2.0
"""The contents of a dataset from bags: observations, actions, and intervals between messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from adahi_lab.datasets.bag_dataset import BagDataset
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.reporting.style import figure, save, share_below, titled

ENTRIES_SHOWN = 12  # of an observation: more lines are indistinguishable
SHORTEST_S = 1e-4  # shown; simulated time stands still between ticks


def _draw_rows(axes: Axes, rows: np.ndarray, trajectories: Trajectories) -> None:
    for entry in range(min(ENTRIES_SHOWN, rows.shape[1])):
        axes.plot(rows[:, entry], linewidth=0.7, label=str(entry))
    for end in trajectories.ends[:-1]:
        axes.axvline(end, color="0.8", linewidth=0.5, zorder=0)
    axes.legend(fontsize=6.5, ncols=2, loc="upper right")


def _draw_intervals(axes: Axes, intervals_s: dict[str, np.ndarray]) -> None:
    for topic, values in intervals_s.items():
        axes.plot(*share_below(1e3 * values.clip(SHORTEST_S)), label=topic)
    axes.set_xscale("log")
    axes.legend(fontsize=7.5)


def draw_dataset(dataset: BagDataset, path: Path) -> None:
    """Draw a dataset: its numbers over the steps, lengths of episodes, intervals between messages."""
    data = dataset.trajectories
    drawn = figure(9.6, 7.2)
    grid = drawn.add_gridspec(3, 2)
    shown = min(ENTRIES_SHOWN, data.observations.shape[1])
    title = f"observations, {shown} of {data.observations.shape[1]} entries"
    _draw_rows(titled(drawn.add_subplot(grid[0, :]), title, "step", ""), data.observations, data)
    _draw_rows(titled(drawn.add_subplot(grid[1, :]), "actions", "step", ""), data.actions, data)
    lengths = titled(drawn.add_subplot(grid[2, 0]), "length of each episode", "episode", "steps")
    lengths.bar(np.arange(len(data)), np.diff(data.ends, prepend=0), color="0.5")
    _draw_intervals(
        titled(drawn.add_subplot(grid[2, 1]), "from message to message", "ms", "share below"),
        {topic: values for topic, values in dataset.intervals_s.items() if len(values)},
    )
    save(drawn, path)

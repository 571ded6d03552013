# SPDX-License-Identifier: Apache-2.0
"""How a robot goes on by plans: what was planned and what was done, along an episode."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection

from adahi_ros.lab.reporting.style import SENT, titled
from adahi_ros.lab.tasks.task_interface import TaskSpec
from adahi_ros.protocol.records import StepRecord

SHOWN = 2  # entries of an action: more get too small to read
UNITS = {"_rad_s": "rad/s", "_m_s": "m/s", "_rad": "rad", "_m": "m"}  # the longest that fits is first


def shown_entries(rows: Sequence[StepRecord], action_range: np.ndarray) -> list[int]:
    """Return which entries of the action to show: those in which the robot left the plan most, in order.

    Args:
        rows: of one episode.
        action_range: (A,) of each entry.
    """
    apart = [np.subtract(row.action, row.planned_action) for row in rows if row.action and row.planned_action]
    if not apart:
        return list(range(len(action_range)))[:SHOWN]
    left = np.sum((np.array(apart) / action_range) ** 2, axis=0)
    return sorted(np.argsort(-left, kind="stable")[:SHOWN].tolist())


def axis_label(name: str) -> str:
    """Return the name of an entry of the action as a plot says it."""
    for suffix, unit in UNITS.items():
        if name.endswith(suffix):
            return f"{name.removesuffix(suffix).replace('_', ' ')}\n({unit})"
    return name.replace("_", " ")


def draw_plans(panels: Sequence[Axes], rows: Sequence[StepRecord], spec: TaskSpec) -> None:
    """Draw what was done and what the plan said of it, an entry of the action to a plot, and the requests.

    Args:
        panels: `SHOWN`, one below the other; those without an entry to show are removed.
        rows: of one episode.
        spec: of the task.
    """
    entries = shown_entries(rows, spec.action_high - spec.action_low)
    for axes in panels[len(entries) :]:
        axes.remove()
    used = panels[: len(entries)]
    for axes, entry in zip(used, entries, strict=True):
        titled(axes, "", "", axis_label(spec.action_names[entry]))
        aged = _draw_entry(axes, rows, entry, spec.control_rate_hz)
        axes.tick_params(labelbottom=axes is used[-1])
    titled(used[0], "what the plan said, and what was done", "", used[0].get_ylabel())
    used[-1].set_xlabel("time (s)")
    used[0].legend(fontsize=7.5, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, borderaxespad=0.1)
    used[0].figure.colorbar(aged, ax=list(used), label="age of the plan (steps)", aspect=30, pad=0.01)


def _draw_entry(axes: Axes, rows: Sequence[StepRecord], entry: int, rate_hz: float) -> PathCollection:
    done = [row for row in rows if row.action]
    planned = [row for row in rows if row.planned_action]
    axes.plot(
        [row.step / rate_hz for row in done],
        [row.action[entry] for row in done],
        color="0.2",
        linewidth=1.2,
        label="done",
        zorder=1,
    )
    aged = axes.scatter(
        [row.step / rate_hz for row in planned],
        [row.planned_action[entry] for row in planned],
        c=[row.plan_age for row in planned],
        cmap="viridis_r",
        vmin=0,
        s=14,
        label="planned",
        zorder=2,
    )
    axes.plot(
        [row.step / rate_hz for row in rows if row.transmitted],
        [0.03 for row in rows if row.transmitted],
        transform=axes.get_xaxis_transform(),  # at the bottom, whatever is shown
        color=SENT,
        linestyle="none",
        marker="|",
        markersize=9,
        markeredgewidth=1.8,
        label="asked",
    )
    return aged

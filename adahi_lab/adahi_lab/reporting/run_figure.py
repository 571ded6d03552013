# SPDX-License-Identifier: Apache-2.0
"""The picture of a run: an episode's plans, the gate's inputs, each method's costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.gridspec import SubplotSpec

from adahi_lab.evaluation.run_record import RunRecord
from adahi_lab.figures import Figures
from adahi_lab.reporting.style import SENT, draw_latencies, figure, label_of, mark_success, save, titled
from adahi_lab.reporting.trace_figure import draw_trace, trace_of
from adahi_lab.tasks import make
from adahi_lab.tasks.task_interface import TaskSpec
from adahi_ros.protocol.records import StepRecord

SHOWN = 2  # entries of an action: more would be too small to read
UNITS = {"_rad_s": "rad/s", "_m_s": "m/s", "_rad": "rad", "_m": "m"}  # the longest that fits is first


def _first_episode(steps: Sequence[StepRecord]) -> list[StepRecord]:
    return [step for step in steps if step.episode == steps[0].episode]


def _draw_tradeoff(axes: Axes, figures: Mapping[str, Figures]) -> None:
    titled(axes, "success against calls", "transmission rate (share of steps)", "success rate")
    for name, values in figures.items():
        mark_success(axes, name, values["transmission_rate"], values)
    axes.set_xlim(-0.05, 1.08)
    axes.set_ylim(-0.03, 1.05)
    axes.legend(fontsize=7.5)


def _places(within: SubplotSpec, rows: int, columns: int) -> list[SubplotSpec]:
    grid = within.subgridspec(rows, columns)
    return [grid[row, column] for row in range(rows) for column in range(columns)]


def draw_run(task: str, runs: Mapping[str, RunRecord], figures: Mapping[str, Figures], path: Path) -> None:
    """Draw runs over DDS, one or several methods.

    Of the first method with plans, the first episode is shown with its plans. The gate's inputs are those of
    ADAHI, or else of the first method with drafts.

    Args:
        task: registry name.
        runs: of each method.
        figures: `run_figures` of each method.
        path: to write.
    """
    spec = make(task).spec
    by_plan = [name for name, run in runs.items() if any(step.planned_action for step in run.steps)]
    by_draft = [name for name in runs if name not in by_plan]
    gated = "adahi" if "adahi" in by_draft else by_draft[0] if by_draft else ""
    drawn = figure(12.0 if by_plan else 9.6, 7.0 if by_plan else 6.4)
    rows = drawn.add_gridspec(2, 1)
    columns = _places(rows[1], 1, 3 if by_plan and gated else 2)
    if by_plan:
        panels = [drawn.add_subplot(each) for each in _places(rows[0], SHOWN, 1)]
        draw_plans(panels, _first_episode(runs[by_plan[0]].steps), spec)
    if gated:
        axes = drawn.add_subplot(columns.pop(0) if by_plan else rows[0])
        titled(axes, f"what the gate of {label_of(gated)} saw", "time (s)", "action deviation")
        rows_of_it = _first_episode(runs[gated].steps)
        times_s = np.array([row.step for row in rows_of_it]) / spec.control_rate_hz
        draw_trace(axes, trace_of(rows_of_it, times_s))
    _draw_tradeoff(drawn.add_subplot(columns[0]), figures)
    taken = {name: np.array([row.total_ms for row in run.steps]) for name, run in runs.items()}
    axes = drawn.add_subplot(columns[1])
    titled(axes, "latency of every action", "observation to action (ms)", "share of actions below")
    draw_latencies(axes, taken)
    save(drawn, path)


def shown_entries(rows: Sequence[StepRecord], action_range: np.ndarray) -> list[int]:
    """Return the entries of the action to show: those with the largest deviations from the plan, in order.

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
    """Return the name of an entry of the action for a plot."""
    for suffix, unit in UNITS.items():
        if name.endswith(suffix):
            return f"{name.removesuffix(suffix).replace('_', ' ')}\n({unit})"
    return name.replace("_", " ")


def draw_plans(panels: Sequence[Axes], rows: Sequence[StepRecord], spec: TaskSpec) -> None:
    """Draw executed and planned actions, one entry per plot, and the requests.

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
        transform=axes.get_xaxis_transform(),  # always at the bottom
        color=SENT,
        linestyle="none",
        marker="|",
        markersize=9,
        markeredgewidth=1.8,
        label="asked",
    )
    return aged

# SPDX-License-Identifier: Apache-2.0
"""The picture of a run: how an episode ended, what the gate saw, what each method cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.gridspec import SubplotSpec

from adahi_ros.lab.figures import Figures
from adahi_ros.lab.methods.methods import METHODS
from adahi_ros.lab.reporting.plan_figure import SHOWN, draw_plans
from adahi_ros.lab.reporting.style import COLOURS, figure, mark_success, save, share_below, titled
from adahi_ros.lab.reporting.trace_figure import draw_trace, trace_of
from adahi_ros.lab.tasks import make
from adahi_ros.protocol.records import RunRecord, StepRecord


def _first_episode(steps: Sequence[StepRecord]) -> list[StepRecord]:
    return [step for step in steps if step.episode == steps[0].episode]


def _draw_world(axes: Axes, task: str, seed: int, method: str, rows: Sequence[StepRecord]) -> None:
    """Repeat the episode from its actions, and show how it ended."""
    world = make(task)
    world.reset(seed, [rows[0].episode])
    for row in (row for row in rows if row.action):
        world.step(np.array([row.action]))
    axes.imshow(world.render())
    axes.set_axis_off()
    axes.set_title(f"{method}: first episode, repeated", loc="left", fontsize=9.5, fontweight="bold")


def _draw_tradeoff(axes: Axes, figures: Mapping[str, Figures]) -> None:
    titled(axes, "success against calls", "transmission rate (share of steps)", "success rate")
    for name, values in figures.items():
        mark_success(axes, name, values["transmission_rate"], values)
    axes.set_xlim(-0.05, 1.08)
    axes.set_ylim(-0.03, 1.05)
    axes.legend(fontsize=7.5)


def _draw_latency(axes: Axes, runs: Mapping[str, RunRecord]) -> None:
    titled(axes, "latency of every action", "observation to action (ms)", "share of actions below")
    for name, run in runs.items():
        latency, share = share_below(np.array([row.total_ms for row in run.steps]))
        axes.plot(latency, share, color=COLOURS[name], label=METHODS[name].label)
    axes.set_xscale("log")
    axes.legend(fontsize=7.5, loc="lower right")


def _places(within: SubplotSpec, rows: int, columns: int) -> list[SubplotSpec]:
    grid = within.subgridspec(rows, columns)
    return [grid[row, column] for row in range(rows) for column in range(columns)]


def draw_run(
    task: str, seed: int, runs: Mapping[str, RunRecord], figures: Mapping[str, Figures], path: Path
) -> None:
    """Draw runs over DDS, one or several methods.

    The first episode that is shown is that of the first method that went on by plans, with what it planned;
    where none did, that of ADAHI, or else of the first method. What a gate saw is shown of a draft's.

    Args:
        task: registry name.
        seed: of the episodes.
        runs: of each method.
        figures: `run_figures` of each method.
        path: to write.
    """
    spec = make(task).spec
    by_plan = [name for name, run in runs.items() if any(step.planned_action for step in run.steps)]
    by_draft = [name for name in runs if name not in by_plan]
    gated = "adahi" if "adahi" in by_draft else by_draft[0] if by_draft else ""
    shown = by_plan[0] if by_plan else gated
    episode = _first_episode(runs[shown].steps)
    drawn = figure(12.0 if by_plan else 9.6, 7.0 if by_plan else 6.4)
    rows = drawn.add_gridspec(2, 1)
    upper = rows[0].subgridspec(1, 2, width_ratios=(1, 1.9 if by_plan else 1.25))
    _draw_world(drawn.add_subplot(upper[0]), task, seed, METHODS[shown].label, episode)
    columns = _places(rows[1], 1, 3 if by_plan and gated else 2)
    if by_plan:
        draw_plans([drawn.add_subplot(each) for each in _places(upper[1], SHOWN, 1)], episode, spec)
    if gated:
        axes = drawn.add_subplot(columns.pop(0) if by_plan else upper[1])
        titled(axes, f"what the gate of {METHODS[gated].label} saw", "time (s)", "action deviation")
        rows_of_it = _first_episode(runs[gated].steps)
        times_s = np.array([row.step for row in rows_of_it]) / spec.control_rate_hz
        draw_trace(axes, trace_of(rows_of_it, times_s))
    _draw_tradeoff(drawn.add_subplot(columns[0]), figures)
    _draw_latency(drawn.add_subplot(columns[1]), runs)
    save(drawn, path)

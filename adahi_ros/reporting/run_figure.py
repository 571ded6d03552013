"""The picture of a run: how an episode ended, what the gate saw, what each method cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from adahi_ros.evaluation.methods import METHODS
from adahi_ros.evaluation.traces import Trace
from adahi_ros.reporting.style import COLOURS, figure, mark_success, save, titled
from adahi_ros.reporting.trace_figure import draw_trace
from adahi_ros.tasks import make
from adahi_ros.wire.records import RunRecord, StepRecord


def _first_episode(steps: Sequence[StepRecord]) -> list[StepRecord]:
    return [step for step in steps if step.episode == steps[0].episode]


def _draw_world(axes: Axes, task: str, seed: int, rows: Sequence[StepRecord]) -> None:
    """Repeat the episode from its actions, and show how it ended."""
    world = make(task)
    world.reset(seed, [rows[0].episode])
    for row in rows:
        world.step(np.array([row.action]))
    axes.imshow(world.render())
    axes.set_axis_off()
    axes.set_title("first episode, as it ended", loc="left", fontsize=9.5, fontweight="bold")


def _trace(rows: Sequence[StepRecord], rate_hz: float) -> Trace:
    return Trace(
        time_s=np.array([row.step for row in rows]) / rate_hz,
        deviation=np.array([row.deviation for row in rows]),
        transmitted=np.array([row.transmitted for row in rows]),
        verified=np.array([row.verified for row in rows]),
        accepted=np.array([all(row.accepted) for row in rows]),
        # the other gates' thresholds are not of the deviation
        threshold=rows[0].threshold if rows[0].gate == "deviation" else None,
    )


def _draw_tradeoff(axes: Axes, figures: Mapping[str, Mapping[str, Any]]) -> None:
    titled(axes, "success against transmissions", "transmission rate", "success rate")
    for name, values in figures.items():
        mark_success(axes, name, values["transmission_rate"], values)
    axes.set_xlim(-0.05, 1.08)
    axes.set_ylim(-0.03, 1.05)
    axes.legend(fontsize=7.5, loc="center left")


def _draw_latency(axes: Axes, runs: Mapping[str, RunRecord]) -> None:
    titled(axes, "latency of every action", "observation to action (ms)", "share of actions below")
    for name, run in runs.items():
        latency = np.sort([row.total_ms for row in run.steps])
        axes.plot(
            latency,
            np.arange(1, len(latency) + 1) / len(latency),
            color=COLOURS[name],
            label=METHODS[name].label,
        )
    axes.set_xscale("log")
    axes.legend(fontsize=7.5, loc="lower right")


def draw_run(
    task: str,
    seed: int,
    runs: Mapping[str, RunRecord],
    figures: Mapping[str, Mapping[str, Any]],
    path: Path,
) -> None:
    """Draw runs over DDS, one or several methods.

    Args:
        task: registry name.
        seed: of the episodes.
        runs: of each method.
        figures: `run_figures` of each method.
        path: to write.
    """
    shown = _first_episode(runs.get("adahi", next(iter(runs.values()))).steps)
    drawn = figure(9.6, 6.4)
    grid = drawn.add_gridspec(2, 2, width_ratios=(1, 1.25))
    _draw_world(drawn.add_subplot(grid[0, 0]), task, seed, shown)
    axes = titled(drawn.add_subplot(grid[0, 1]), "what the gate saw", "time (s)", "action deviation")
    draw_trace(axes, _trace(shown, make(task).spec.control_rate_hz))
    _draw_tradeoff(drawn.add_subplot(grid[1, 0]), figures)
    _draw_latency(drawn.add_subplot(grid[1, 1]), runs)
    save(drawn, path)

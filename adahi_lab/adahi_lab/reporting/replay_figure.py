# SPDX-License-Identifier: Apache-2.0
"""The results of methods at recorded observations, in one picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from adahi_lab.calibration.replay import REPLAYED, Replay
from adahi_lab.evaluation.traces import Trace
from adahi_lab.methods.methods import METHODS
from adahi_lab.reporting.style import COLOURS, MARKERS, draw_latencies, figure, save, titled
from adahi_lab.reporting.trace_figure import GATE_OF_THE_TRACE, draw_trace

SHOWN = ("draft", "target", "adahi")  # of the methods of every replay


def _draw_actions(axes: Axes, replay: Replay, rate_hz: float) -> None:
    """Draw the first entry of the first episode's actions."""
    length = int(replay.recorded.ends[0])
    time_s = np.arange(length) / rate_hz
    axes.plot(time_s, replay.recorded.actions[:length, 0], color="0.6", linewidth=2.5, label="recorded")
    shown = [name for name in replay.logs if name in SHOWN or name not in REPLAYED]
    for name in shown or replay.logs:
        values = replay.logs[name].action[:length, 0, 0]
        axes.plot(time_s, values, color=COLOURS[name], linewidth=0.9, label=METHODS[name].label)
    axes.legend(fontsize=7.5)


def _draw_errors(axes: Axes, replay: Replay) -> None:
    for name, figures in replay.figures.items():
        looks: dict[str, Any] = {"marker": MARKERS[name], "linestyle": "none", "label": METHODS[name].label}
        axes.plot(figures["transmission_rate"], figures["mse"], color=COLOURS[name], **looks)
    axes.set_xlim(-0.05, 1.08)
    axes.set_ylim(0.0, 1.15 * max(figures["mse"] for figures in replay.figures.values()))
    axes.legend(fontsize=7.5)  # points of methods with plans may be in any corner


def draw_replay(replay: Replay, rate_hz: float, link: str, path: Path) -> None:
    """Draw a replay.

    Args:
        replay: of a bag.
        rate_hz: of the control steps.
        link: name of the profile of the modelled latency.
        path: to write.
    """
    drawn = figure(9.6, 6.4)
    grid = drawn.add_gridspec(2, 2)
    watched = "adahi" if "adahi" in replay.logs else next(iter(replay.logs))
    title = f"first episode: what the gate sees, {METHODS[watched].label}"
    saw = titled(drawn.add_subplot(grid[0, 0]), title, "time (s)", "deviation")
    seen = replay.figures[watched]
    threshold = seen["threshold"] if seen["gate"] == GATE_OF_THE_TRACE else None
    draw_trace(saw, Trace.from_log(replay.logs[watched], 0, rate_hz, threshold))
    acts = titled(drawn.add_subplot(grid[0, 1]), "first episode: first entry of the action", "time (s)", "")
    _draw_actions(acts, replay, rate_hz)
    errors = drawn.add_subplot(grid[1, 0])
    titled(errors, "error to what was recorded", "transmission rate", "MSE, in action scales")
    _draw_errors(errors, replay)
    costs = drawn.add_subplot(grid[1, 1])
    titled(costs, f"latency, modelled on {link}", "observation to action (ms)", "share below")
    taken = {name: latency[replay.logs[name].active] for name, latency in replay.latency_ms.items()}
    draw_latencies(costs, taken)
    save(drawn, path)

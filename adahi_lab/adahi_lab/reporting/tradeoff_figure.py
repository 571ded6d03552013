# SPDX-License-Identifier: Apache-2.0
"""The benefit of transmissions: success against latency (the paper's figure 4) and transmission rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from rich.table import Table

from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.sweep import COUNTED, Area, Point, areas, curve_of
from adahi_lab.evaluation.tradeoffs import Tradeoffs
from adahi_lab.figures import Figures
from adahi_lab.methods.methods import METHODS
from adahi_lab.reporting import style
from adahi_lab.reporting.calibration_figure import draw_calibrations
from adahi_lab.reporting.tables import narrow_table, number
from adahi_lab.reporting.trace_figure import draw_traces

NEAR = 0.01  # tolerance of a wanted rate
CURVES = {"plan_K": "Plan/K", "corrector_K": "Corrected plan/K"}  # labels of curves that are no method


def draw_latency(
    figures: Mapping[str, Mapping[str, Figures]],
    throughputs: Mapping[str, Mapping[str, np.ndarray]],
    path: Path,
) -> None:
    """Draw success against mean latency, and the distribution of throughput, a row per task.

    Args:
        figures: by task and method; with `success_rate`, `success_ci95`, `per_action_latency_ms`.
        throughputs: by task and method, actions per second; a task may be left out.
        path: to write.
    """
    drawn = style.figure(9.0, 3.2 * len(figures))
    for row, (task, methods) in enumerate(figures.items()):
        axes = drawn.add_subplot(len(figures), 2, 2 * row + 1)
        style.titled(axes, task, "mean latency of an action (ms)", "success rate")
        for name, values in methods.items():
            style.mark_success(axes, name, values["per_action_latency_ms"]["mean"], values)
        axes.set_ylim(-0.03, 1.05)
        axes.legend(fontsize=7.5)
        axes = drawn.add_subplot(len(figures), 2, 2 * row + 2)
        style.titled(axes, task, "actions per second", "share of windows below")
        for name, rates in throughputs.get(task, {}).items():
            looks: dict[str, Any] = {"linestyle": style.LINES.get(name, "-"), "label": METHODS[name].label}
            axes.step(*style.share_below(rates), color=style.COLOURS[name], **looks)
        axes.set_xscale("log")
        axes.legend(fontsize=7.5)
    style.save(drawn, path)


def draw_sweeps(sweeps: Mapping[str, Sequence[Point]], path: Path) -> None:
    """Draw success against transmission rate for every gate, a panel per task."""
    with style.panels(path, sweeps, "transmission rate", "success rate", (4.6, 4.2)) as plots:
        for axes, points in zip(plots, sweeps.values(), strict=True):
            _draw_sweep(axes, points)


def _draw_sweep(axes: Axes, points: Sequence[Point]) -> None:
    for name in dict.fromkeys(curve_of(point.method) for point in points):
        alike = [point for point in points if curve_of(point.method) == name]
        chosen = [point.figures for point in alike]
        rates = [figures["transmission_rate"] for figures in chosen]
        if len(chosen) == 1:
            style.mark_success(axes, alike[0].method, rates[0], chosen[0])
        else:
            style.draw_success(axes, rates, chosen, **style.curve_looks(name, _label(name)))
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.05)
    axes.legend(fontsize=7.5)


def area_table(sweeps: Mapping[str, Sequence[Point]]) -> Table:
    """Return the area under each curve, a column per task."""
    found = {task: areas(points) for task, points in sweeps.items()}
    title = "mean success, TR {:g} to {:g}".format(*COUNTED)
    table = narrow_table(title, ("method",), list(found))
    for name in dict.fromkeys(name for each in found.values() for name in each):
        row = (each.get(name) for each in found.values())
        table.add_row(_label(name), *("" if area is None else _shown(area) for area in row))
    table.caption = "(from, to): rates that were measured, where those are fewer; level beyond them"
    return table


def _shown(area: Area) -> str:
    low, high = area.rates
    whole = low < COUNTED[0] + NEAR and high > COUNTED[1] - NEAR
    return number(area.area) if whole else f"{number(area.area)} ({low:.2f}, {high:.2f})"


def _label(curve: str) -> str:
    return CURVES[curve] if curve in CURVES else METHODS[curve].label


def draw_pictures(
    comparisons: Mapping[str, Comparison], found: Mapping[str, Tradeoffs], folder: Path
) -> list[Path]:
    """Draw all pictures into a folder; return their paths.

    Args:
        comparisons: by task.
        found: by task.
        folder: to write.
    """
    names = {name: folder / f"{name}.png" for name in ("rejection", "latency", "sweep", "traces")}
    draw_calibrations([comparison.calibration for comparison in comparisons.values()], names["rejection"])
    draw_latency(
        {task: pictures.latency for task, pictures in found.items()},
        {task: pictures.throughput for task, pictures in found.items()},
        names["latency"],
    )
    draw_sweeps({task: pictures.sweep for task, pictures in found.items()}, names["sweep"])
    draw_traces({task: pictures.trace for task, pictures in found.items()}, names["traces"])
    return list(names.values())

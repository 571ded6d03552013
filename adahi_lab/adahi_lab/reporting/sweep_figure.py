# SPDX-License-Identifier: Apache-2.0
"""The benefit of transmissions: success against transmission rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from rich.table import Table

from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.sweep import COUNTED, Area, Point, areas, curve_of
from adahi_lab.methods.methods import METHODS
from adahi_lab.reporting import style
from adahi_lab.reporting.calibration_figure import draw_calibrations
from adahi_lab.reporting.tables import narrow_table, number

NEAR = 0.01  # tolerance of a wanted rate
CURVES = {"plan_K": "Plan/K", "corrector_K": "Corrected plan/K"}  # labels of curves that are no method


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
    comparisons: Mapping[str, Comparison], sweeps: Mapping[str, Sequence[Point]], folder: Path
) -> list[Path]:
    """Draw rejection and sweeps, both by task, into a folder; return the paths."""
    names = [folder / f"{name}.png" for name in ("rejection", "sweep")]
    draw_calibrations([comparison.calibration for comparison in comparisons.values()], names[0])
    draw_sweeps(sweeps, names[1])
    return names

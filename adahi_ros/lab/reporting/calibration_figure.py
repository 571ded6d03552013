# SPDX-License-Identifier: Apache-2.0
"""How well a gate predicts: rejection against deviation (the paper's figure 2), harm against expectation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from adahi_ros.gates.parameter_file import Calibration
from adahi_ros.lab.figures import Figures
from adahi_ros.lab.reporting.style import COLOURS, figure, save, titled


def _draw(axes: Axes, calibration: Calibration) -> None:
    figures = calibration.figures
    deviation = np.array(figures["bins"]["deviation"])
    titled(axes, calibration.task, "action deviation", "rejection probability (primary code)")
    axes.plot(
        deviation, figures["bins"]["rejection"], "o", color="0.25", markersize=4, label="equal-count bins"
    )
    fine = np.linspace(deviation[0], deviation[-1], 200)
    for kind, x, colour in (
        ("linear", fine, COLOURS["adahi"]),
        ("logarithmic", np.log(fine), COLOURS["draft"]),
    ):
        fit = figures[kind]
        axes.plot(
            fine,
            fit["slope"] * x + fit["intercept"],
            color=colour,
            label=f"{kind}, $R^2$ = {fit['r2']:.3f}",
            linestyle="-" if kind == "linear" else "--",
        )
    threshold = calibration.thresholds["deviation"]
    axes.axvline(threshold, color="0.5", linestyle=":", label=f"threshold {threshold:.3f}")
    axes.legend(fontsize=8)


def draw_calibrations(calibrations: Sequence[Calibration], path: Path) -> None:
    """Draw the bins, the fits and the threshold of calibrations, side by side."""
    drawn = figure(4.2 * len(calibrations), 3.2)
    for column, calibration in enumerate(calibrations):
        _draw(drawn.add_subplot(1, len(calibrations), column + 1), calibration)
    save(drawn, path)


def draw_reliability(found: Figures, title: str, path: Path) -> None:
    """Draw what `evaluation.train_gate.reliability` returns."""
    drawn = figure(4.2, 3.6)
    axes = drawn.add_subplot(1, 1, 1)
    titled(axes, title, "expected distance from a fresh plan (action scales)", "measured")
    most = 1.05 * max(*found["expected"], *found["measured"])
    axes.plot([0.0, most], [0.0, most], color="0.6", linestyle=":", label="as expected")
    label = f"equal-count bins, rank correlation {found['rank_correlation']:.2f}"
    axes.plot(found["expected"], found["measured"], "o-", color=COLOURS["adahi"], markersize=4, label=label)
    axes.legend(fontsize=8)
    save(drawn, path)

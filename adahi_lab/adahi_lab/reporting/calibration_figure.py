# SPDX-License-Identifier: Apache-2.0
"""How well deviation predicts rejection (the paper's figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.reporting.style import COLOURS, panels


def _draw(axes: Axes, calibration: Calibration) -> None:
    figures = calibration.figures
    deviation = np.array(figures["bins"]["deviation"])
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
    titles, y = [each.task for each in calibrations], "rejection probability (primary code)"
    with panels(path, titles, "action deviation", y, (4.2, 3.2)) as plots:
        for axes, calibration in zip(plots, calibrations, strict=True):
            _draw(axes, calibration)

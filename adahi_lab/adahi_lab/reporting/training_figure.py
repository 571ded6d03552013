# SPDX-License-Identifier: Apache-2.0
"""Loss curves."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from adahi_lab.reporting.style import COLOURS, panels

SMOOTHED_POINTS = 100


def draw_losses(losses: dict[str, list[float]], path: Path) -> None:
    """Draw the loss of every step and its running mean, one panel per model."""
    with panels(path, losses, "step", "loss", (3.4, 2.6)) as plots:
        for axes, values in zip(plots, losses.values(), strict=True):
            window = max(1, len(values) // SMOOTHED_POINTS)
            smooth = np.convolve(values, np.ones(window) / window, mode="valid")
            axes.plot(values, color="0.8", linewidth=0.5)
            axes.plot(np.arange(len(smooth)) + window - 1, smooth, color=COLOURS["adahi"], linewidth=1.5)
            axes.set_yscale("log")

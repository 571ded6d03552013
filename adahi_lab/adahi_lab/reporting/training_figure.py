# SPDX-License-Identifier: Apache-2.0
"""Loss curves."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from adahi_lab.reporting.style import COLOURS, figure, save, titled

SMOOTHED_POINTS = 100


def draw_losses(losses: dict[str, list[float]], path: Path) -> None:
    """Draw the loss of every step and its running mean, one panel per model."""
    drawn = figure(3.4 * len(losses), 2.6)
    for index, (name, values) in enumerate(losses.items()):
        axes = titled(drawn.add_subplot(1, len(losses), index + 1), name, "step", "loss")
        window = max(1, len(values) // SMOOTHED_POINTS)
        smooth = np.convolve(values, np.ones(window) / window, mode="valid")
        axes.plot(values, color="0.8", linewidth=0.5)
        axes.plot(np.arange(len(smooth)) + window - 1, smooth, color=COLOURS["adahi"], linewidth=1.5)
        axes.set_yscale("log")
    save(drawn, path)

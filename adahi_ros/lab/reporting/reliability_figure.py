# SPDX-License-Identifier: Apache-2.0
"""How reliable a learned gate is: the harm that it expects against the harm that was measured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adahi_ros.lab.reporting.style import COLOURS, figure, save, titled


def draw_reliability(found: Mapping[str, Any], title: str, path: Path) -> None:
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

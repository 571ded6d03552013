# SPDX-License-Identifier: Apache-2.0
"""Deviation along an episode, with the transmitted steps marked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from adahi_ros.lab.evaluation.traces import Trace
from adahi_ros.lab.reporting.style import SENT, SKIPPED, WITHOUT_REPLY, figure, save, titled


def draw_trace(axes: Axes, trace: Trace) -> None:
    """Draw a trace into a plot."""
    known = np.isfinite(trace.deviation)
    sent, verified, accepted = trace.transmitted, trace.verified, trace.accepted
    axes.plot(trace.time_s[known], trace.deviation[known], color="0.8", linewidth=0.8, zorder=1)
    for mask, colour, marker, label in (
        (~sent, SKIPPED, "o", "skipped: the draft is executed"),
        (verified & accepted, SENT, "o", "sent, accepted"),
        (verified & ~accepted, SENT, "x", "sent, resampled"),
        (sent & ~verified, WITHOUT_REPLY, "^", "sent, no reply: the draft is executed"),
    ):
        mask = mask & known
        if mask.any():
            axes.scatter(
                trace.time_s[mask],
                trace.deviation[mask],
                s=14,
                c=colour,
                marker=marker,
                label=label,
                zorder=2,
            )
    if trace.threshold is not None:
        axes.axhline(trace.threshold, color="0.3", linestyle=":", label=f"threshold {trace.threshold:.2f}")
    axes.set_ylim(top=1.5 * axes.get_ylim()[1])  # room for the legend
    axes.legend(fontsize=7.5, loc="upper right")


def draw_traces(traces: Mapping[str, Trace], path: Path) -> None:
    """Draw an episode of each task, one below the other."""
    drawn = figure(8.0, 2.4 * len(traces))
    for row, (task, trace) in enumerate(traces.items()):
        axes = drawn.add_subplot(len(traces), 1, row + 1)
        draw_trace(titled(axes, task, "time (s)", "action deviation"), trace)
    save(drawn, path)

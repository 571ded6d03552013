# SPDX-License-Identifier: Apache-2.0
"""Deviation along an episode, with the transmitted steps marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from adahi_lab.evaluation.traces import Trace
from adahi_lab.reporting.style import SENT, SKIPPED, WITHOUT_REPLY
from adahi_ros.protocol.records import StepRecord

GATE_OF_THE_TRACE = "deviation"  # other gates' thresholds do not concern the deviation


def trace_of(steps: Sequence[StepRecord], times_s: np.ndarray) -> Trace:
    """Return recorded steps, at times (T,), as their gate saw them, with gaps without a draft."""
    return Trace(
        time_s=times_s,
        deviation=np.array([step.deviation for step in steps]),
        transmitted=np.array([step.transmitted for step in steps]),
        verified=np.array([step.verified for step in steps]),
        accepted=np.array([all(step.accepted) for step in steps]),
        threshold=steps[-1].threshold if steps[-1].gate == GATE_OF_THE_TRACE else None,
    )


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
            looks: dict[str, Any] = {"s": 14, "c": colour, "marker": marker, "label": label}
            axes.scatter(trace.time_s[mask], trace.deviation[mask], zorder=2, **looks)
    if trace.threshold is not None:
        axes.axhline(trace.threshold, color="0.3", linestyle=":", label=f"threshold {trace.threshold:.2f}")
    axes.set_ylim(top=1.5 * axes.get_ylim()[1])  # room for the legend
    axes.legend(fontsize=7.5, loc="upper right")

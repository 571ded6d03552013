# SPDX-License-Identifier: Apache-2.0
"""All pictures of a run of `adahi figures`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from adahi_ros.lab.evaluation.evaluate import Comparison
from adahi_ros.lab.evaluation.tradeoffs import Tradeoffs
from adahi_ros.lab.reporting.calibration_figure import draw_calibrations
from adahi_ros.lab.reporting.trace_figure import draw_traces
from adahi_ros.lab.reporting.tradeoff_figure import draw_latency, draw_sweeps


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

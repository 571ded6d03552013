# SPDX-License-Identifier: Apache-2.0
"""What methods cost across an emulated link, measured by `lab/bench/loop_latency.py`: table and picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from rich.table import Table

from adahi_ros.lab.figures import Figures
from adahi_ros.lab.methods.methods import METHODS
from adahi_ros.lab.reporting.style import COLOURS, figure, save, share_below, titled
from adahi_ros.lab.reporting.tables import narrow_table, number
from adahi_ros.protocol.records import RunRecord

WAYS = {"bytes_up_per_action": ("to the server", 1.0), "bytes_down_per_action": ("back", 0.5)}


def latency_table(figures: Figures) -> Table:
    """Return latency, rate and bytes of each method, eighty columns wide at the most.

    Args:
        figures: of `wireless.latency.measure_latency`.
    """
    headings = ["mean\nms", "p50", "p95", "p99", "acts\nper s", "worst\n2.5 %", "TR"]
    headings += ["bytes\nup", "down", "suc-\ncess"]
    table = narrow_table(_title(figures), ("method",), headings, "\n".join(_notes(figures)))
    for name, values in figures["methods"].items():
        latency = values["per_action_latency_ms"]
        table.add_row(
            METHODS[name].label,
            *(number(latency[each], 1) for each in ("mean", "p50", "p95", "p99")),
            number(values["actions_per_s"], 0),
            number(values["throughput_per_s_p2_5"], 0),
            number(values["transmission_rate"], 2),
            *(number(values[way], 0) for way in WAYS),
            number(values["success_rate"], 2),
        )
    return table


def _title(figures: Figures) -> str:
    trip = figures["link"]["rtt_ms"]
    return (
        f"{figures['task']} across {figures['profile']}, {figures['episodes']} episodes a method\n"
        f"round trip {trip['mean']:.2f} ms; target of {figures['target_parameters']:,} weights"
    )


def _notes(figures: Figures) -> Iterator[str]:
    shares = figures["adahi_to_hybrid"]
    if shares is not None:
        parts = {"latency": "latency", "success_rate": "success", "bytes_up_per_action": "bytes up"}
        found = [f"{label} {number(shares[name]) or '-'}" for name, label in parts.items()]
        yield f"ADAHI / Hybrid: {', '.join(found)}"
    for name, values in figures["methods"].items():
        if values["fallbacks"]:
            yield f"{METHODS[name].label}: {values['fallbacks']} of {values['steps']} steps without a reply"


def draw_latency(figures: Figures, runs: Mapping[str, RunRecord], path: Path) -> None:
    """Draw the latency of every action, and the bytes that an action takes.

    Args:
        figures: of `wireless.latency.measure_latency`.
        runs: of each method.
        path: to write.
    """
    drawn = figure(9.6, 4.0)
    left, right = drawn.subplots(1, 2, width_ratios=(1.6, 1))
    drawn.suptitle(_title(figures).replace("\n", "; "), fontsize=9.5, x=0.01, ha="left")
    _draw_distribution(left, runs)
    _draw_bytes(right, figures["methods"])
    save(drawn, path)


def _draw_distribution(axes: Axes, runs: Mapping[str, RunRecord]) -> None:
    titled(axes, "latency of every action", "observation to action (ms)", "share of actions below")
    for name, run in runs.items():
        latency, share = share_below(np.array([step.total_ms for step in run.steps]))
        mean = f"{METHODS[name].label}, mean {latency.mean():.1f} ms"
        axes.step(latency, share, where="post", color=COLOURS[name], label=mean)
    axes.set_xscale("log")
    axes.legend(fontsize=7.5, loc="upper left", bbox_to_anchor=(0.0, -0.16), ncols=3, frameon=False)


def _draw_bytes(axes: Axes, methods: Mapping[str, Figures]) -> None:
    titled(axes, "what crosses the link", "bytes per action, whole frames", "")
    rows = np.arange(len(methods))
    before = np.zeros(len(methods))
    for way, (label, opacity) in WAYS.items():
        sizes = np.array([values[way] or 0.0 for values in methods.values()])
        colours = [COLOURS[name] for name in methods]
        axes.barh(rows, sizes, left=before, color=colours, alpha=opacity, label=label)
        before += sizes
    axes.set_yticks(rows, [METHODS[name].label for name in methods])
    axes.invert_yaxis()
    axes.legend(fontsize=7.5, loc="upper left", bbox_to_anchor=(0.0, -0.16), ncols=2, frameon=False)

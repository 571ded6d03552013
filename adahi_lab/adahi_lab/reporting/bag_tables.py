# SPDX-License-Identifier: Apache-2.0
"""Tables of the contents of bags, at most eighty columns wide."""

from __future__ import annotations

from rich.table import Table

from adahi_lab.calibration.replay import Replay
from adahi_lab.datasets.bag_dataset import BagDataset
from adahi_lab.methods.methods import METHODS
from adahi_lab.reporting.tables import narrow_table, number


def dataset_table(dataset: BagDataset) -> Table:
    """Return the messages of each topic, and what was left out."""
    summary = dataset.summary
    counts = {**summary["left_out"], **summary["episodes_ended_by"]}
    excluded = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count)
    table = narrow_table(
        f"{summary['robot_type']}: {summary['episodes']} episodes, {summary['steps']} steps",
        ("topic",),
        ("messages", "rate\nHz", "largest\ngap s", "age\np50 ms", "age\np95 ms", "age\nmax ms"),
        caption=f"left out or cut: {excluded or 'nothing'}",
    )
    for topic, figures in summary["topics"].items():
        ages = figures["age_ms"] or {}
        table.add_row(
            topic,
            str(figures["messages"]),
            number(figures["rate_hz"], 1),
            number(figures["largest_gap_s"], 3),
            number(ages.get("p50"), 2),
            number(ages.get("p95"), 2),
            number(ages.get("max"), 2),
        )
    return table


def replay_table(replay: Replay, title: str) -> Table:
    """Return the results and costs of each method.

    Methods with plans have the number of calls instead of the deviation, which needs drafts.
    """
    by_plans = any(METHODS[name].by_plans for name in replay.figures)
    table = narrow_table(
        title,
        ("method",),
        (
            *("MSE", "TR", "TSR", "rejected,\nprimary"),
            *(("calls",) if by_plans else ("deviation\np50", "p95")),
            *("modelled\nmean ms", "p95 ms"),
        ),
        caption=(
            f"a draft takes {replay.costs.draft_ms:.2f} ms here, a target {replay.costs.target_ms:.2f} ms; "
            "MSE in action scales"
        ),
    )
    for name, figures in replay.figures.items():
        deviation = figures["deviation"] or {}
        latency = figures["modelled_latency_ms"] or {}
        deviations = [number(deviation.get(each), 2) for each in ("p50", "p95")]
        table.add_row(
            METHODS[name].label,
            number(figures["mse"]),
            number(figures["transmission_rate"]),
            number(figures["true_skip_ratio"]),
            number(next(iter(figures["rejection_rate"]), None)),
            *([str(figures["calls"])] if by_plans else deviations),
            number(latency.get("mean"), 2),
            number(latency.get("p95"), 2),
        )
    return table

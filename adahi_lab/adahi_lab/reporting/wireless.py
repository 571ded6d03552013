# SPDX-License-Identifier: Apache-2.0
"""Measurements across a link, of calls and of methods: tables, and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from rich.table import Table

from adahi_lab.evaluation.run_metrics import run_throughput
from adahi_lab.evaluation.run_record import RunRecord
from adahi_lab.figures import Figures
from adahi_lab.methods.methods import METHODS
from adahi_lab.reporting.style import COLOURS, SENT, SKIPPED, figure, save, share_below, titled
from adahi_lab.reporting.tables import narrow_table, number
from adahi_lab.tasks import make

PEERS = {
    "adahi_dds": "ours",
    "openpi_websocket": "openpi",
    "lerobot_grpc": "LeRobot",
    "flask_waitress": "waitress",
    "flask_json": "Flask",
}
LINKS = {
    "wifi_ac": "no loss",
    "wifi_ac_loss_1": "1 % loss",
    "wifi_ac_loss_5": "5 % loss",
    "wifi_ac_bursts": "bursts",
}


def peers_table(figures: Figures) -> Table:
    """Return latency, bytes, losses and an outage of each peer.

    Args:
        figures: of `wireless.peer_comparison.compare_peers`, with `profile` and `calls`.
    """
    trip = figures["link_rtt_ms"]["p50"]
    title = f"a remote policy at every step, across {figures['profile']}, {figures['calls']} calls a turn; ms"
    headings = ["p50", "p99", "beyond\nlink and\ncompute", "in each\nturn", "bytes\na call"]
    headings += ["1 % loss\np50", "p99", "outage\nfailed", "back\nafter"]
    caption = f"from draft in hand to action in hand; round trip of the link alone {trip:.2f} ms; "
    caption += "the outage lasts 500 ms, calls give up after 200"
    table = narrow_table(title, ["way"], headings, caption)
    for name, found in figures["peers"].items():
        lossy, outage = found["loss_1pct"]["rtt_ms"], found["outage"]
        table.add_row(
            PEERS.get(name, name),
            *(number(found["rtt_ms"][each], 1) for each in ("p50", "p99")),
            number(found["beyond_ms"], 2),
            _range(found["beyond_by_turn_ms"]),
            number(found["bytes_per_call"], 0),
            *(number(lossy[each], 1) for each in ("p50", "p99")),
            str(outage["failed"]),
            number(outage["back_after_ms"], 0),
        )
    return table


def _range(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{min(known):.2f}-{max(known):.2f}" if known else ""


def draw_peers(figures: Figures, path: Path) -> None:
    """Draw what each peer adds to link and compute, and the bytes of a call."""
    drawn = figure(9.6, 2.8)
    left, right = drawn.subplots(1, 2)
    peers = figures["peers"]
    rows, names = range(len(peers)), [PEERS.get(name, name) for name in peers]
    titled(left, "what a call adds", "p50 beyond the link's round trip and the server's compute (ms)", "")
    left.barh(rows, [found["beyond_ms"] or 0.0 for found in peers.values()], color=SENT)
    titled(right, "what crosses the link", "bytes a call, whole frames, both ways", "")
    right.barh(rows, [found["bytes_per_call"] for found in peers.values()], color=SKIPPED)
    for row, found in enumerate(peers.values()):
        size = found["bytes_per_call"]
        right.annotate(f" {size:,.0f}", (size, row), va="center")
    right.margins(x=0.2)
    for axes in (left, right):
        axes.set_yticks(rows, names)
        axes.invert_yaxis()
    save(drawn, path)


def dds_table(figures: Figures) -> Table:
    """Return service calls by setting, size and link.

    Args:
        figures: `profiles` of `wireless.dds.compare_dds`.
    """
    headings = ["p50", "p95", "p99", "longest", "calls", "failed", "bytes\nup", "down"]
    table = narrow_table("service calls across the paper's link; ms", ["request", "link", "DDS"], headings)
    profiles = figures["profiles"]
    first = next(iter(profiles.values()))
    for size, links in first.items():
        for link in links:
            for setting, found in profiles.items():
                row = found[size][link]
                times = row["rtt_ms"] or dict.fromkeys(("p50", "p95", "p99", "max"))
                table.add_row(
                    size.replace("_", " ")
                    if link == next(iter(links)) and setting == next(iter(profiles))
                    else "",
                    LINKS.get(link, link) if setting == next(iter(profiles)) else "",
                    setting,
                    *(number(times[each], 0) for each in ("p50", "p95", "p99", "max")),
                    str(row["calls"]),
                    str(row["failed"]),
                    *(number(row[f"bytes_{way}_per_call"], 0) for way in ("up", "down")),
                )
    return table


WAYS = ("bytes_up_per_action", "bytes_down_per_action")


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
            yield f"{METHODS[name].label}: {values['fallbacks']} of {values['steps']} steps fell back"


def draw_latency(figures: Figures, runs: Mapping[str, RunRecord], path: Path) -> None:
    """Draw the latency of every action, and the distribution of throughput as in the paper's figure 4.

    Args:
        figures: of `wireless.latency.measure_latency`.
        runs: of each method.
        path: to write.
    """
    drawn = figure(9.6, 4.0)
    left, right = drawn.subplots(1, 2, width_ratios=(1.3, 1))
    drawn.suptitle(_title(figures).replace("\n", "; "), fontsize=9.5, x=0.01, ha="left")
    _draw_distribution(left, runs)
    _draw_throughput(right, runs, round(make(figures["task"]).spec.control_rate_hz))
    save(drawn, path)


def _draw_distribution(axes: Axes, runs: Mapping[str, RunRecord]) -> None:
    titled(axes, "latency of every action", "observation to action (ms)", "share of actions below")
    for name, run in runs.items():
        latency, share = share_below(np.array([step.total_ms for step in run.steps]))
        mean = f"{METHODS[name].label}, mean {latency.mean():.1f} ms"
        axes.step(latency, share, where="post", color=COLOURS[name], label=mean)
    axes.set_xscale("log")
    axes.legend(fontsize=7.5, loc="upper left", bbox_to_anchor=(0.0, -0.16), ncols=3, frameon=False)


def _draw_throughput(axes: Axes, runs: Mapping[str, RunRecord], window: int) -> None:
    titled(axes, "throughput", f"actions per second, over {window} steps", "share of windows below")
    for name, run in runs.items():
        rates, share = share_below(np.array(run_throughput(run, window)))
        axes.step(rates, share, where="post", color=COLOURS[name])
    axes.set_xscale("log")

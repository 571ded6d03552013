# SPDX-License-Identifier: Apache-2.0
"""Calls across a link, as `wireless` measured them of peers and of DDS settings: tables, and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from adahi_ros.lab.figures import Figures
from adahi_ros.lab.reporting.style import SENT, SKIPPED, figure, save, titled
from adahi_ros.lab.reporting.tables import narrow_table, number

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

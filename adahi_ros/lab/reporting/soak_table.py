# SPDX-License-Identifier: Apache-2.0
"""What a soak found, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table

from adahi_ros.lab.reporting.tables import number


def soak_table(values: Mapping[str, Any]) -> Table:
    """Return steps, fallbacks, latencies and memory.

    Args:
        values: of `wireless.soak.SoakResult`.
    """
    table = Table(
        title=f"soak of {values['minutes']:g} minutes at {values['rate_hz']:g} Hz: "
        f"{'passed' if values['passed'] else 'failed'}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        show_header=False,
        pad_edge=False,
    )
    table.add_column("")
    table.add_column("", justify="right")
    for name in ("observations", "steps", "verified", "skipped"):
        table.add_row(name, f"{values[name]:,}")
    for reason, count in values["fallbacks"].items():
        table.add_row(f"fallback: {reason}", f"{count:,}")
    for percentile, latency in values["command_ms"].items():
        table.add_row(f"observation to command, {percentile}, ms", number(latency, 1))
    for process, memory in values["memory"].items():
        table.add_row(f"memory of {process}, growth", f"{100 * memory['growth']:+.2f} %")
    return table

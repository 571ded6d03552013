# SPDX-License-Identifier: Apache-2.0
"""Tables of a verifier's load by a fleet, and of a soak."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from adahi_lab.figures import Figures
from adahi_lab.reporting.tables import narrow_table, number


def fleet_table(engines: Mapping[str, Figures], title: str) -> Table:
    """Return a row for each way to serve.

    Args:
        engines: of `wireless.fleet_bench.measure_fleet`.
        title: of the table.
    """
    headings = ["robots", "in time", "p50 ms", "p95 ms", "p99 ms", "starved", "requests", "replies"]
    headings += ["replies/s", "plan age", "KiB up", "KiB down", "MiB"]
    table = narrow_table(title, ["engine"], headings)
    for name, found in engines.items():
        trips, age, memory = found["rtt_ms"] or {}, found["plan_age"] or {}, found["memory"]
        table.add_row(
            name,
            f"{found['robots']}",
            f"{found['served_in_time']}",
            *(number(trips.get(each), 1) for each in ("p50", "p95", "p99")),
            f"{found['starved_periods']:,}",
            f"{found['requests']:,}",
            f"{found['replies']:,}",
            number(found["replies_per_s"], 0),
            number(age.get("mean"), 1),
            number(found["bytes_per_request"] / 1024, 2),
            number(found["bytes_per_reply"] / 1024, 2),
            number(memory["last_bytes"] / 2**20 if memory else None, 0),
        )
    return table


def soak_table(values: Figures) -> Table:
    """Return steps, fallbacks, latencies and memory.

    Args:
        values: of `wireless.soak.SoakResult`.
    """
    outcome = "passed" if values["passed"] else "failed"
    title = f"soak of {values['minutes']:g} minutes at {values['rate_hz']:g} Hz: {outcome}"
    table = narrow_table(title, [""], [""])
    table.show_header = False
    for name in ("observations", "steps", "verified", "skipped"):
        table.add_row(name, f"{values[name]:,}")
    for reason, count in values["fallbacks"].items():
        table.add_row(f"fallback: {reason}", f"{count:,}")
    for percentile, latency in values["command_ms"].items():
        table.add_row(f"observation to command, {percentile}, ms", number(latency, 1))
    for process, memory in values["memory"].items():
        table.add_row(f"memory of {process}, growth", f"{100 * memory['growth']:+.2f} %")
    return table

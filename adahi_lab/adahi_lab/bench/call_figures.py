# SPDX-License-Identifier: Apache-2.0
"""Figures of calls across a link, and of a fleet that sends requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from adahi_lab.figures import Figures

STARVED_MOST = 0.01  # share of a robot's periods without a plan; above it, it is not served in time


def fleet_figures(records: Sequence[Figures], seconds: float) -> Figures:
    """Return the figures of a fleet.

    Args:
        records: a `FleetRecord` of each robot, as a mapping.
        seconds: how long they asked.

    Returns:
        `robots`; `served_in_time`: of them, those with a plan in all but `STARVED_MOST` of their periods;
        `rtt_ms`; `starved_periods` and `periods`; `requests`, `replies`, and `replies_per_s`; `plan_age`, in
        steps; `lost`, by why; bytes of a request and of a reply.
    """
    steps, starved, requests, replies = (
        sum(record[name] for record in records) for name in ("steps", "starved", "requests", "replies")
    )
    reasons: Counter[str] = Counter()
    for record in records:
        reasons.update(record["reasons"])
    in_time = [
        record["steps"] > 0 and record["starved"] <= STARVED_MOST * record["steps"] for record in records
    ]
    trips = [each for record in records for each in record["rtt_ms"]]
    return {
        "robots": len(records),
        "served_in_time": int(np.sum(in_time)),
        "rtt_ms": distribution(trips),
        "periods": steps,
        "starved_periods": starved,
        "requests": requests,
        "replies": replies,
        "replies_per_s": replies / seconds,
        "plan_age": distribution([age for record in records for age in record["plan_ages"]]),
        "lost": dict(reasons),
        "bytes_per_request": sum(record["bytes_up"] for record in records) / max(1, requests),
        "bytes_per_reply": sum(record["bytes_down"] for record in records) / max(1, replies),
    }


PERCENTILES = {"p50": 50, "p95": 95, "p99": 99}


def distribution(values: Sequence[float]) -> dict[str, float] | None:
    """Return mean, p50, p95, p99 and maximum; None without samples."""
    if not len(values):
        return None
    found = {name: float(np.percentile(values, at)) for name, at in PERCENTILES.items()}
    return {"mean": float(np.mean(values)), **found, "max": float(np.max(values))}


def call_figures(records: Sequence[Figures], skipped: int = 0) -> Figures:
    """Return the figures of a driver's records (`lab/peers/driving.py`), taken together.

    Args:
        records: of each `calls`, and `bytes_up` and `bytes_down` over all of them.
        skipped: calls at the start of each that are not counted in times: caches and connections warm up.
    """
    calls = [call for record in records for call in record["calls"]]
    counted = [call for record in records for call in record["calls"][skipped:] if call["ok"]]
    up, down = (sum(record[f"bytes_{way}"] for record in records) for way in ("up", "down"))
    return {
        "rtt_ms": distribution([call["ms"] for call in counted]),
        "compute_ms": distribution([call["compute_ms"] for call in counted]),
        "calls": len(calls),
        "failed": sum(not call["ok"] for call in calls),
        "bytes_up_per_call": up / len(calls),
        "bytes_down_per_call": down / len(calls),
        "bytes_per_call": (up + down) / len(calls),
    }


def outage_figures(record: Figures, outage_s: float) -> Figures:
    """Return what an outage did: calls that failed, the longest, and when the first reply came after it.

    Args:
        record: of a driver that cut the link; has `cut_start_s`.
        outage_s: how long it was cut.
    """
    back_s = record["cut_start_s"] + outage_s
    ends = [call["start_s"] + 1e-3 * call["ms"] for call in record["calls"] if call["ok"]]
    after = [end for end in ends if end >= back_s]
    return {
        "outage_s": outage_s,
        "failed": sum(not call["ok"] for call in record["calls"]),
        "longest_ms": max(call["ms"] for call in record["calls"]),
        "back_after_ms": 1e3 * (min(after) - back_s) if after else None,
    }

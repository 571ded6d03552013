# SPDX-License-Identifier: Apache-2.0
"""Figures of calls across a link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

PERCENTILES = {"p50": 50, "p95": 95, "p99": 99}


def distribution(values: Sequence[float]) -> dict[str, float] | None:
    """Return mean, p50, p95, p99 and maximum; None of nothing."""
    if not len(values):
        return None
    found = {name: float(np.percentile(values, at)) for name, at in PERCENTILES.items()}
    return {"mean": float(np.mean(values)), **found, "max": float(np.max(values))}


def call_figures(records: Sequence[Mapping[str, Any]], skipped: int = 0) -> dict[str, Any]:
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


def outage_figures(record: Mapping[str, Any], outage_s: float) -> dict[str, Any]:
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

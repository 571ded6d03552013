# SPDX-License-Identifier: Apache-2.0
"""What a fleet that has asked came to, in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adahi_ros.lab.bench.call_figures import distribution

STARVED_MOST = 0.01  # of a robot's periods, where it is served in time


def fleet_figures(records: Sequence[Mapping[str, Any]], seconds: float) -> dict[str, Any]:
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

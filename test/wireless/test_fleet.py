"""What is told of a fleet that has asked."""

from __future__ import annotations

from typing import Any

from adahi_ros.wireless.fleet_bench import STARVED_MOST, fleet_figures


def record(**changes: Any) -> dict[str, Any]:
    return {
        "steps": 100,
        "starved": 0,
        "requests": 4,
        "replies": 4,
        "rtt_ms": [1.0, 2.0],
        "plan_ages": [1, 3],
        "reasons": {},
        "bytes_up": 400,
        "bytes_down": 800,
        **changes,
    }


def test_figures_by_hand() -> None:
    late = record(
        starved=round(100 * STARVED_MOST) + 1, replies=0, rtt_ms=[], reasons={"deadline": 2, "busy": 1}
    )
    found = fleet_figures([record(), record(starved=1), late, record(steps=0)], 2.0)
    assert (found["robots"], found["served_in_time"]) == (4, 2)
    assert (found["periods"], found["starved_periods"]) == (300, 3)
    assert (found["requests"], found["replies"], found["replies_per_s"]) == (16, 12, 6.0)
    assert found["rtt_ms"]["p50"] == 1.5
    assert found["plan_age"]["mean"] == 2.0
    assert found["lost"] == {"deadline": 2, "busy": 1}
    assert (found["bytes_per_request"], found["bytes_per_reply"]) == (100.0, 3200 / 12)


def test_of_nothing_nothing_is_told() -> None:
    found = fleet_figures([record(steps=0, requests=0, replies=0, rtt_ms=[], plan_ages=[])], 1.0)
    assert (found["served_in_time"], found["rtt_ms"], found["plan_age"]) == (0, None, None)

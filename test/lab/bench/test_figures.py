from __future__ import annotations

from typing import Any

from adahi_ros.lab.bench.call_figures import call_figures


def record(times_ms: list[float | None], bytes_up: int) -> dict[str, Any]:
    """What a driver writes down; None for a call that failed."""
    calls = [{"ms": ms or 99.0, "compute_ms": 0.5, "ok": ms is not None} for ms in times_ms]
    return {"calls": calls, "bytes_up": bytes_up, "bytes_down": 60}


def test_turns_are_taken_together_and_each_warms_up() -> None:
    figures = call_figures([record([50.0, 1.0, 2.0], 300), record([70.0, None, 3.0], 600)], skipped=1)
    assert figures["rtt_ms"]["p50"] == 2.0
    assert figures["rtt_ms"]["max"] == 3.0
    assert (figures["calls"], figures["failed"]) == (6, 1)
    assert figures["bytes_up_per_call"] == 150.0
    assert figures["bytes_down_per_call"] == 20.0
    assert figures["bytes_per_call"] == 170.0

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from adahi_lab.evaluation.run_record import EpisodeRecord, RunRecord
from adahi_lab.reporting.wireless import draw_latency, latency_table
from adahi_ros.protocol.records import StepRecord

Shown = Callable[..., str]
NAMES = ("adahi", "hybrid", "draft", "target", "random")
SHARES = {"latency": 0.5491, "success_rate": 0.95, "bytes_up_per_action": 0.6, "bytes_down_per_action": None}


def figures(fallbacks: int = 0, bytes_up: float | None = 1234.5) -> dict[str, Any]:
    method = {
        "per_action_latency_ms": {"mean": 18.25, "p50": 17.5, "p95": 1021.5, "p99": 1430.25},
        "actions_per_s": 1054.8,
        "throughput_per_s_p2_5": 1000.0,
        "transmission_rate": 0.583,
        "bytes_up_per_action": bytes_up,
        "bytes_down_per_action": 1010.0,
        "success_rate": 0.9,
        "fallbacks": fallbacks,
        "steps": 40,
    }
    return {
        "profile": "wifi_ac",
        "task": "ball",
        "episodes": 12,
        "target_parameters": 5_000_056,
        "link": {"rtt_ms": {"mean": 12.3}},
        "methods": dict.fromkeys(NAMES, method),
        "adahi_to_hybrid": SHARES,
    }


def test_steps_without_a_reply_are_reported(shown: Shown) -> None:
    assert "fell back" not in shown(latency_table(figures()))
    assert "Hybrid: 3 of 40 steps fell back" in shown(latency_table(figures(fallbacks=3)))


def test_it_is_drawn(step_record: Callable[..., StepRecord], tmp_path: Path) -> None:
    run = RunRecord((step_record(), step_record(step=1, total_ms=13.0)), (EpisodeRecord(0, 2, True),))
    for number, each in enumerate((figures(), figures(bytes_up=None))):
        path = tmp_path / f"{number}.png"
        draw_latency(each, dict.fromkeys(NAMES, run), path)
        assert path.read_bytes().startswith(b"\x89PNG")

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table

from adahi_ros.evaluation.tables import calibration_table, method_table
from adahi_ros.speculation.parameter_file import Calibration

FIGURES: dict[str, Any] = {
    "success_rate": 0.9,
    "success_ci95": [0.8, 0.95],
    "transmission_rate": 0.6123,
    "true_skip_ratio": None,
    "mse": 0.25,
}
SPREAD = {"mean": 1.5, "p50": 1.25, "p95": 3.0, "p99": 4.0}


def text(table: Table) -> list[str]:
    console = Console(width=160)
    with console.capture() as capture:
        console.print(table)
    return capture.get().splitlines()


def row(lines: list[str], start: str) -> list[str]:
    line = next(line for line in lines if start in line)
    return [cell.strip() for cell in line.strip("│┃").replace("┃", "│").split("│")]


def test_methods_side_by_side() -> None:
    figures = {"adahi": {**FIGURES, "true_skip_ratio": 0.75}, "hybrid": FIGURES}
    lines = text(method_table(figures, "ball, 10 episodes"))
    assert lines[0].startswith("ball, 10 episodes")
    assert row(lines, "method") == ["method", "success", "95 %", "TR", "TSR", "MSE"]
    assert row(lines, "ADAHI") == ["ADAHI", "0.900", "0.800 .. 0.950", "0.612", "0.750", "0.250"]
    assert row(lines, "Hybrid")[4] == ""


def test_latency_is_shown_where_it_was_measured() -> None:
    measured = {"per_action_latency_ms": SPREAD, "verify_rtt_ms": SPREAD, "fallbacks": 2}
    figures = {
        "adahi": {**FIGURES, **measured},
        "draft": {**FIGURES, **measured, "verify_rtt_ms": None, "fallbacks": 0},
    }
    lines = text(method_table(figures, "ball over DDS"))
    assert row(lines, "method")[6:] == ["per action ms", "p95 ms", "verify p50 ms", "fallbacks"]
    assert row(lines, "ADAHI")[6:] == ["1.50", "3.00", "1.25", "2"]
    assert row(lines, "Draft only")[6:] == ["1.50", "3.00", "", "0"]


def test_a_calibration(calibration: Calibration) -> None:
    figures = {
        "actions": 12345,
        "episodes": 20,
        "measured_rates": {"deviation": 0.601, "uncertainty": 0.598},
        "rank_correlation": 0.46,
        "rejection_at_threshold": 0.64,
        "linear": {"slope": 0.33, "intercept": 0.387, "r2": 0.8},
        "logarithmic": {"slope": 0.266, "intercept": -0.1, "r2": 0.987},
    }
    lines = text(calibration_table(replace(calibration, figures=figures)))
    assert row(lines, "actions")[1] == "12,345 on 20 episodes"
    assert row(lines, "linear fit")[1] == "P = 0.330 d +0.387, R2 0.800"
    assert row(lines, "logarithmic fit")[1] == "P = 0.266 ln d -0.100, R2 0.987"
    assert row(lines, "threshold, deviation gate")[1] == "0.4000, TR 0.601"
    assert row(lines, "threshold, random gate")[1] == "0.4000, TR 0.600"
    assert row(lines, "rejection probability there")[1] == "0.640"

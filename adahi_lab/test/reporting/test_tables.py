from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.reporting import tables

Shown = Callable[..., str]
FIGURES: dict[str, Any] = {
    "success_rate": 0.9,
    "success_ci95": [0.8, 0.95],
    "transmission_rate": 0.6123,
    "true_skip_ratio": None,
    "true_skip_ratio_primary": None,
    "mse": 0.25,
    "calls_per_episode": 28.0,
    "steps_to_success": None,
    "held_share": 0.0,
}
SPREAD = {"mean": 1.5, "p50": 1.25, "p95": 3.0, "p99": 4.0}


def headings(table: Table) -> list[str]:
    return [str(column.header) for column in table.columns]


def row(table: Table, start: str) -> list[str]:
    rows = list(zip(*(column.cells for column in table.columns), strict=True))
    return next([str(cell) for cell in cells] for cells in rows if start in str(cells[0]))


def width(table: Table) -> int:
    return Console(width=200).measure(table).maximum


def test_methods_episode_by_episode() -> None:
    """Probabilities are adjusted for the three of them."""
    pairs = {"adahi": (3, 20, 0.0001, 0.9), "plan_4": (9, 7, 0.8036, 0.01), "random": (0, 6, 0.03125, 0.2)}
    names = "only_this", "only_other", "p", "no_worse"
    figures = {
        name: {"against": {"method": "target", **dict(zip(names, pair, strict=True))}}
        for name, pair in pairs.items()
    }
    table = tables.paired_table({"target": {"against": None}, **figures})
    assert table is not None
    assert table.title == "against Target only"
    assert headings(table) == ["method", "it alone", "that alone", "p", "no worse,\np", "is"]
    assert [str(cell) for cell in table.columns[0].cells] == ["ADAHI", "Plan/4", "Random"]
    assert row(table, "ADAHI")[1:] == ["3", "20", "< .001", "0.900", "worse"]
    assert row(table, "Plan/4")[1:] == ["9", "7", "0.804", "0.030", "no worse"]
    assert row(table, "Random")[1:] == ["0", "6", "0.062", "0.400", "undecided"]
    assert width(table) <= 80
    assert tables.paired_table({"target": {"against": None}, "hybrid": {}}) is None


def test_a_long_name_of_a_method_takes_nothing_from_its_figures(shown: Shown) -> None:
    name = f"always:hidden_states:file={'/a/long/folder' * 6}/head.safetensors:tolerance=0.1"
    pair = {"method": "target", "only_this": 3, "only_other": 20, "p": 0.0004}
    table = tables.paired_table({"target": {"against": None}, name: {"against": pair}})
    printed = shown(table)
    assert re.search(r" 3 +20 +< \.001 +1\.000 +worse\n", printed)
    assert name in "".join(line.split(" ")[0] for line in printed.splitlines())
    printed = shown(tables.method_table({name: FIGURES}, "ball"))
    assert re.search(r" 0\.900 +0\.80-0\.95 +0\.612 +28\.0 +0\.000 +0\.250\n", printed)
    assert name in "".join(line.split(" ")[0] for line in printed.splitlines())


def test_where_methods_stand() -> None:
    def pair(method: str, this: int, other: int, p: float) -> dict[str, Any]:
        return {"method": method, "only_this": this, "only_other": other, "p": p}

    sent = {"up": 9100.0, "down": 2300.0}
    plain = {**FIGURES, "random": None, "bytes_per_episode": sent, "weights_on_robot": 16080}
    baseline = {**FIGURES, "success_rate": 0.79, "against": pair("random", 20, 2, 0.001)}
    unknown = {**plain, "against": pair("target", 2, 9, 0.07), "random": baseline}
    figures = {
        "target": {**plain, "against": None, "weights_on_robot": 0},
        "adahi": {**plain, "against": pair("target", 0, 6, 0.03), "random": baseline},
        "corrector_8": {**unknown, "bytes_per_episode": None, "weights_on_robot": None},
    }
    table = tables.standing_table(figures, "ball")
    assert width(table) <= 80
    assert "ref: Target only;" in str(table.caption)
    shared = ["0.900", "0.80-0.95"]
    assert row(table, "Target")[1:] == [*shared, "", "", "", "0.612", "28.0", "11.4", "0"]
    assert row(table, "ADAHI")[1:] == [*shared, "-", "0.790", "+", "0.612", "28.0", "11.4", "16,080"]
    assert row(table, "Corrected")[1:] == [*shared, "?", "0.790", "+", "0.612", "28.0", "?", "?"]


def test_latency_is_shown_where_it_was_measured() -> None:
    measured = {"per_action_latency_ms": SPREAD, "verify_rtt_ms": SPREAD, "fallbacks": 2}
    figures = {
        "adahi": {**FIGURES, **measured},
        "draft": {**FIGURES, **measured, "verify_rtt_ms": None, "fallbacks": 0},
    }
    table = tables.method_table(figures, "ball over DDS")
    assert headings(table)[5:] == ["action\nmean ms", "action\np95 ms", "verify\np50 ms", "fell\nback"]
    assert row(table, "ADAHI")[5:] == ["1.50", "3.00", "1.25", "2"]
    assert row(table, "Draft only")[5:] == ["1.50", "3.00", "", "0"]
    assert width(table) <= 80


def test_ours_beside_the_papers() -> None:
    ours = {**FIGURES, "true_skip_ratio": 0.25, "true_skip_ratio_primary": 0.5}
    table = tables.paper_table(
        {"ball": {"adahi": ours, "oracle": ours}, "kitchen": {"hybrid": FIGURES}, "maze": {"adahi": ours}}
    )
    adahi = ["ADAHI", "0.900", "0.80-0.95", "0.811", "0.612", "0.25", "0.50", "0.553", "0.25", ""]
    assert row(table, "ADAHI") == adahi
    assert row(table, "Oracle")[3:] == ["", "0.612", "0.25", "0.50", "", "0.25", ""]
    assert row(table, "Hybrid")[3:] == ["0.430", "0.612", "", "", "", "0.25", "1.63"]
    columns = [list(column.cells) for column in table.columns]
    names = [str(cell).replace("[bold]", "").replace("[/]", "") for cell in columns[0]]
    assert names == ["ball", "ADAHI", "Oracle", "kitchen", "Hybrid", "maze", "ADAHI"]
    assert [column[-1] for column in columns][3] == ""  # nobody reported that task


def test_refused_steps_are_reported_where_there_were_any() -> None:
    whole = {**FIGURES, "refused": 0}
    some = {"adahi": whole, "hybrid": {**whole, "refused": 12}, "plan_2": {**whole, "refused": 1}}
    assert tables.method_table({"adahi": whole}, "swarm").caption == tables.RATES
    assert tables.paper_table({"swarm": {"adahi": whole}}).caption is None
    text = "refused, being no action: Hybrid 12, Plan/2 1"
    assert tables.method_table(some, "swarm").caption == f"{tables.RATES}\n{text}"
    assert tables.paper_table({"ball": {"adahi": whole}, "swarm": some}).caption == (
        "refused, being no action: swarm Hybrid 12, swarm Plan/2 1"
    )


def test_a_calibration(calibration: Calibration) -> None:
    figures = {
        "actions": 12345,
        "episodes": 20,
        "measured_rates": {"deviation": 0.601, "uncertainty": 0.598},
        "rank_correlation": 0.46,
        "rank_correlation_held_out": 0.45,
        "rejection_at_threshold": 0.64,
        "linear": {"slope": 0.33, "intercept": 0.387, "r2": 0.8},
        "logarithmic": {"slope": 0.266, "intercept": -0.1, "r2": 0.987},
    }
    table = tables.calibration_table(replace(calibration, figures=figures))
    assert row(table, "actions")[1] == "12,345 on 20 episodes"
    assert row(table, "rank correlation with rejection")[1] == "0.460"
    assert row(table, "the same, held out")[1] == "0.450"
    assert row(table, "linear fit")[1] == "P = 0.330 d +0.387, R2 0.800"
    assert row(table, "logarithmic fit")[1] == "P = 0.266 ln d -0.100, R2 0.987"
    assert row(table, "threshold, deviation gate")[1] == "0.4000, TR 0.601"
    assert row(table, "threshold, random gate")[1] == "0.4000, TR 0.600"
    assert row(table, "rejection probability there")[1] == "0.640"

from __future__ import annotations

from collections.abc import Callable

import pytest

from adahi_ros.lab.bench.loop_latency import CONDITIONS
from adahi_ros.lab.reporting.plans_table import plans_table

FIGURES = {"plan_8": {"success_rate": 0.5, "transmission_rate": 0.125}}
MEASURED = {
    **FIGURES["plan_8"],
    "per_action_latency_ms": {"mean": 1.25, "p99": 4.75},
    "missed_periods": 3,
    "steps": 400,
}
DRIFTS = {"drifts": 100, "bound": 0.1, "held": 97, "worst": 0.1234, "rate": 0.2, "furthest_from_rate": 0.0125}


@pytest.fixture
def lines(shown: Callable[..., str]) -> Callable[..., list[str]]:
    """From correctors to the lines of the table."""
    conditions = {"a slow target": {"methods": {"plan_8": MEASURED}}}
    return lambda correctors: shown(
        plans_table("ball", FIGURES, conditions, correctors, DRIFTS), width=160
    ).splitlines()


def line(start: str, shown: list[str]) -> list[str]:
    return next(each for each in shown if start in each).split()


def test_figures_stand_where_they_were_measured(lines: Callable[..., list[str]]) -> None:
    shown = lines(None)
    assert line("in one process", shown)[-3:] == ["Plan/8", "0.500", "0.125"]
    assert line("a slow target", shown)[-7:] == ["0.500", "0.125", "1.2", "4.8", "3", "of", "400"]
    text = " ".join(" ".join(shown).split())
    assert "unasked held in 97, the worst was 0.123; the rate of requests was at most 0.013 off." in text
    assert "recordings" not in "\n".join(shown)


def test_correctors_of_recordings_and_of_simulation_are_side_by_side(lines: Callable[..., list[str]]) -> None:
    rates = {"of_recordings": 0.97, "of_simulation": 0.99}
    shown = lines({"recorded_episodes": 5, "methods": {"corrector_12": rates}})
    assert line("of recordings", shown)[-1] == "0.970"
    assert line("of simulation", shown)[-1] == "0.990"


def test_a_terminal_of_80_columns_shows_every_figure(shown: Callable[..., str]) -> None:
    conditions = {name: {"methods": {"corrector_12": MEASURED}} for name in CONDITIONS}
    rates = {"of_recordings": 0.97, "of_simulation": 0.99}
    correctors = {"methods": {"corrector_12": rates}}
    text = shown(plans_table("ball", FIGURES, conditions, correctors, DRIFTS))
    assert text.count("3 of 400") == len(CONDITIONS)
    assert "0.970" in text
    assert "…" not in text

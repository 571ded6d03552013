from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.sweep import Point, areas, sweep_figures
from adahi_lab.reporting.sweep_figure import area_table, draw_pictures

BINS = {"deviation": [0.1, 0.5, 1.0], "rejection": [0.2, 0.4, 0.5]}
FIT = {"slope": 0.3, "intercept": 0.2, "r2": 0.9}


def curve(name: str, *points: tuple[float, float]) -> list[Point]:
    return [
        Point(name, {"transmission_rate": rate, "success_rate": success, "success_ci95": [0.0, 1.0]})
        for rate, success in points
    ]


BALL = [*curve("adahi", (0.021, 0.4), (1.0, 0.4)), *curve("plan_2", (0.5, 0.8))]
SWARM = [*curve("plan_2", (0.5, 0.8)), *curve("plan_4", (0.25, 0.8))]


def test_the_area_under_every_curve_has_the_rates_that_were_measured() -> None:
    table = area_table({"ball": BALL, "swarm": SWARM})
    assert [str(column.header) for column in table.columns] == ["method", "ball", "swarm"]
    assert [list(column.cells) for column in table.columns] == [
        ["ADAHI", "Plan/K"],
        ["0.400", ""],
        ["", "0.800 (0.25, 0.50)"],
    ]


def test_the_numbers_behind_the_pictures_are_plain_finite_json() -> None:
    figures = sweep_figures(SWARM)
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    assert [each["method"] for each in figures["sweep"]] == ["plan_2", "plan_4"]
    assert figures["area"]["plan_K"]["area"] == areas(SWARM)["plan_K"].area


@pytest.mark.parametrize("tasks", [("ball",), ("ball", "again")])
@pytest.mark.filterwarnings("error")
def test_every_picture_is_drawn(comparison: Comparison, tmp_path: Path, tasks: tuple[str, ...]) -> None:
    figures = {"bins": BINS, "linear": FIT, "logarithmic": FIT}
    drawn = replace(comparison, calibration=replace(comparison.calibration, figures=figures))
    folder = tmp_path / "new"
    paths = draw_pictures(dict.fromkeys(tasks, drawn), dict.fromkeys(tasks, BALL), folder)
    assert {path.name for path in paths} == {"rejection.png", "sweep.png"}
    assert set(folder.iterdir()) == set(paths)
    for path in paths:
        assert path.read_bytes().startswith(b"\x89PNG")

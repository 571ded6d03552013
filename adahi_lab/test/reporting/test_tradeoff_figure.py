from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from adahi_lab.evaluation import step_latency as latency
from adahi_lab.evaluation import tradeoffs
from adahi_lab.evaluation.evaluate import Comparison, evaluate_methods
from adahi_lab.evaluation.loaded_policies import Policies
from adahi_lab.evaluation.sweep import RATES, SWEPT, Point, areas, fixed_methods
from adahi_lab.link.link_profile import LinkProfile
from adahi_lab.reporting.tradeoff_figure import area_table, draw_pictures

LINK = LinkProfile(rtt_mean_ms=12.0, rtt_jitter_ms=0.0, rate_mbit_s=55.4)
EPISODES = range(2)
BINS = {"deviation": [0.1, 0.5, 1.0], "rejection": [0.2, 0.4, 0.5]}
FIT = {"slope": 0.3, "intercept": 0.2, "r2": 0.9}


@pytest.fixture(scope="module")
def reported() -> Counter[str]:
    return Counter()


@pytest.fixture(scope="module")
def found(comparison: Comparison, reported: Counter[str]) -> tradeoffs.Tradeoffs:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latency, "REPETITIONS", 3)
        return tradeoffs.measure_tradeoffs(
            comparison, LINK, EPISODES, 1, on_done=lambda name, done: reported.update({name: done})
        )


@pytest.fixture(scope="module")
def drawn(comparison: Comparison) -> Comparison:
    """With the figures of a calibration, as pictures need them."""
    figures = {"bins": BINS, "linear": FIT, "logarithmic": FIT}
    return Comparison(
        comparison.task,
        comparison.files,
        type(comparison.calibration)(**{**vars(comparison.calibration), "figures": figures}),
        comparison.seed,
    )


def test_progress_is_reported_of_every_episode_that_was_announced(
    found: tradeoffs.Tradeoffs, reported: Counter[str], policies: Policies
) -> None:
    assert reported.total() == tradeoffs.episodes_run(len(EPISODES), policies)
    assert (
        tradeoffs.episodes_run(10, replace(policies, plans=None)) == tradeoffs.episodes_run(10, policies) - 30
    )


def test_the_area_under_every_curve_has_the_rates_that_were_measured() -> None:
    def curve(name: str, *points: tuple[float, float]) -> list[Point]:
        return [Point(name, {"transmission_rate": rate, "success_rate": success}) for rate, success in points]

    ball = [*curve("adahi", (0.021, 0.4), (1.0, 0.4)), *curve("plan_2", (0.5, 0.8))]
    swarm = [*curve("plan_2", (0.5, 0.8)), *curve("plan_4", (0.25, 0.8))]
    table = area_table({"ball": ball, "swarm": swarm})
    assert [str(column.header) for column in table.columns] == ["method", "ball", "swarm"]
    assert [list(column.cells) for column in table.columns] == [
        ["ADAHI", "Plan/K"],
        ["0.400", ""],
        ["", "0.800 (0.25, 0.50)"],
    ]


def test_the_numbers_behind_the_pictures_are_plain_finite_json(
    found: tradeoffs.Tradeoffs, policies: Policies
) -> None:
    figures = tradeoffs.tradeoff_figures({"ball": found, "again": found})
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    assert list(figures) == ["ball", "again"]
    assert list(figures["ball"]["latency"]) == list(tradeoffs.LATENCY_METHODS)
    assert len(figures["ball"]["sweep"]) == len(fixed_methods(policies)) + len(SWEPT) * len(RATES)
    expected = areas(found.sweep)
    assert {name: each["area"] for name, each in figures["ball"]["area"].items()} == {
        name: each.area for name, each in expected.items()
    }
    assert expected.keys() == {*SWEPT, "plan_K"}


def test_latency_is_what_each_method_waited_for(found: tradeoffs.Tradeoffs) -> None:
    mean = {name: values["per_action_latency_ms"]["mean"] for name, values in found.latency.items()}
    # By the round trip of 12 ms, however fast this machine computes.
    assert mean["draft"] < mean["adahi"] < mean["hybrid"]
    assert mean["draft"] < mean["random"] < mean["hybrid"]
    assert 12.0 < mean["target"] < mean["hybrid"]
    for name, values in found.latency.items():
        rates = found.throughput[name]
        assert values["actions_per_s"]["mean"] == pytest.approx(rates.mean())
        assert rates.min() <= values["actions_per_s"]["worst"] <= values["actions_per_s"]["mean"]
        assert math.isclose(values["success_rate"], 0.0)


def test_latency_measured_over_dds_takes_the_place_of_the_simulated(
    found: tradeoffs.Tradeoffs,
    comparison: Comparison,
    drawn: Comparison,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("adahi_lab.evaluation.tradeoffs.sweep", lambda *arguments, **options: found.sweep)
    monkeypatch.setattr(latency, "REPETITIONS", 3)
    spread = {"mean": 77.0, "p50": 77.0, "p95": 77.0, "p99": 77.0}
    evaluated = evaluate_methods(comparison, ["uncertainty"], EPISODES)["uncertainty"]
    figures = {**evaluated, "per_action_latency_ms": spread, "throughput_per_s": [12.0, 13.0]}
    measured = dict.fromkeys(("adahi", "uncertainty"), figures)
    both = tradeoffs.measure_tradeoffs(comparison, LINK, EPISODES, 1, measured)
    assert both.latency["adahi"] == both.latency["uncertainty"] == measured["adahi"]
    assert both.latency.keys() == both.throughput.keys() == measured.keys()  # nothing simulated among them
    for path in draw_pictures({"ball": drawn}, {"ball": both}, tmp_path):
        assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("tasks", [("ball",), ("ball", "again")])
@pytest.mark.filterwarnings("error")
def test_every_picture_is_drawn(
    found: tradeoffs.Tradeoffs, drawn: Comparison, tmp_path: Path, tasks: tuple[str, ...]
) -> None:
    folder = tmp_path / "new"
    paths = draw_pictures(dict.fromkeys(tasks, drawn), dict.fromkeys(tasks, found), folder)
    assert {path.name for path in paths} == {"rejection.png", "latency.png", "sweep.png", "traces.png"}
    assert set(folder.iterdir()) == set(paths)
    for path in paths:
        assert path.read_bytes().startswith(b"\x89PNG")

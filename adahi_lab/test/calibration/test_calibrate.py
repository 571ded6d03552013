from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from adahi_lab.calibration.calibrate import (
    FOLDS,
    SMOOTHINGS,
    Wanted,
    best_variant,
    calibrate,
    deviations,
    measure,
    searched_gates,
)
from adahi_lab.calibration.parameter_file import Calibration, load_calibration
from adahi_lab.evaluation.episodes import calibration_episodes
from adahi_lab.evaluation.evaluate import Comparison, play_all
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.evaluation.metrics import transmission_rate
from adahi_lab.evaluation.rollout import Log
from adahi_lab.reporting.calibration_figure import draw_calibrations
from adahi_ros.core.assets import asset
from adahi_ros.gates.gate_config import NORMALIZATIONS

RATE = 0.45
OF_REPLIES = {"deviation_codes": "adahi_codes", "deviation_kept": "adahi_kept"}
METHODS_OF_GATES = {**searched_gates(), "random": "random", **OF_REPLIES}


def logs(files: PolicyFiles, found: Calibration, methods: list[str], episodes: range) -> dict[str, Log]:
    outcomes = play_all(Comparison("ball", files, found, 0), methods, episodes, 1)
    return {name: outcome.log for name, outcome in outcomes.items()}


def assert_rates(files: PolicyFiles, found: Calibration, gates: list[str], episodes: int) -> None:
    played = logs(files, found, [METHODS_OF_GATES[gate] for gate in gates], range(episodes))
    for name, log in played.items():
        rate = transmission_rate(log.transmitted, log.active)
        assert rate == pytest.approx(found.transmission_rate, abs=0.05), name


@pytest.fixture(scope="module")
def found(files: PolicyFiles) -> Calibration:
    return calibrate("ball", files, Wanted(RATE, 0.5, "std"), 0, 40)


@pytest.fixture(scope="module")
def shipped() -> PolicyFiles:
    return PolicyFiles(asset("checkpoints/ball"), "onnxruntime")


def test_every_gate_reaches_the_rate_on_fresh_episodes(files: PolicyFiles, found: Calibration) -> None:
    assert found.thresholds.keys() == {"deviation", "uncertainty", "oracle", "random"}
    assert found.thresholds["random"] == 1 - RATE
    assert_rates(files, found, list(found.thresholds), 100)


def test_a_task_that_a_file_describes_is_noted_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adahi_lab.calibration.rejection_curve.MOST_TRIALS", 2)
    path = tmp_path / "file.yaml"
    shutil.copy(asset("config/tasks/inverted_pendulum.yaml"), path)
    files = PolicyFiles(asset("checkpoints/inverted_pendulum"), "onnxruntime")
    found = calibrate(str(path), files, Wanted(0.5, 0.5, "std"), 0, 2)
    assert found.task == "inverted_pendulum"


def test_the_shipped_policies_reach_the_rate_on_fresh_episodes(shipped: PolicyFiles) -> None:
    found = calibrate("ball", shipped, Wanted(0.6, 0.8, "std"), 0, 25)
    assert_rates(shipped, found, list(found.thresholds), 50)
    assert found.figures["rank_correlation"] > 0.2  # with these, deviation tells rejection


def test_a_wanted_rejection_sets_the_threshold_and_the_others_follow(
    shipped: PolicyFiles, found: Calibration
) -> None:
    log = logs(shipped, found, ["hybrid"], calibration_episodes(10))["hybrid"]
    best = measure(log, shipped.load().draft.action_scale, 0.5, "std").best
    wanted = float(best.rejection(np.array(1.0)))
    again = calibrate("ball", shipped, Wanted(0.9, 0.5, "std", rejection=wanted), 0, 10)
    rates = again.figures["measured_rates"]
    assert again.thresholds["deviation"] == pytest.approx(1.0)
    assert again.transmission_rate == pytest.approx(rates["deviation"], abs=1e-4)
    for gate in ("uncertainty", "oracle"):
        assert rates[gate] == pytest.approx(rates["deviation"], abs=0.02)
    assert again.thresholds["random"] == 1 - again.transmission_rate
    assert again.figures["rejection_at_threshold"] == pytest.approx(wanted, abs=1e-4)


def test_figures_say_what_was_measured(found: Calibration, files: PolicyFiles) -> None:
    figures, policies = found.figures, files.load()
    json.dumps(figures, allow_nan=False)
    assert (found.draft, found.target) == (policies.draft.digest, policies.target.digest)
    assert figures["episodes"] == 40
    assert figures["measured_rates"].keys() == {"deviation", "uncertainty", "oracle"}
    for rate in figures["measured_rates"].values():
        assert rate == pytest.approx(RATE, abs=0.01)
    # One variant was given, so there was nothing to choose and nothing to hold out.
    assert figures["rank_correlation_held_out"] == figures["rank_correlation"]
    assert figures["bins"]["deviation"] == sorted(figures["bins"]["deviation"])
    assert all(0 <= share <= 1 for share in figures["bins"]["rejection"])


def test_the_variant_that_ranks_best_is_taken_and_again_with_the_same_seed(
    files: PolicyFiles, found: Calibration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adahi_lab.calibration.rejection_curve.MOST_TRIALS", 2)  # how near says nothing here
    chosen = calibrate("ball", files, Wanted(RATE), 0, 6)
    log = logs(files, found, ["hybrid"], calibration_episodes(6))["hybrid"]
    scale = files.load().draft.action_scale
    ranks = {(s, n): measure(log, scale, s, n).rank_correlation for s in SMOOTHINGS for n in NORMALIZATIONS}
    assert ranks[chosen.smoothing, chosen.normalization] == max(ranks.values()) > min(ranks.values())
    assert -1 <= chosen.figures["rank_correlation_held_out"] <= 1
    again = calibrate("ball", files, Wanted(RATE, chosen.smoothing, chosen.normalization), 0, 6)
    assert again.thresholds == chosen.thresholds


def test_thresholds_may_be_searched_on_fewer_episodes(
    files: PolicyFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adahi_lab.calibration.rejection_curve.MOST_TRIALS", 2)
    few = calibrate("ball", files, Wanted(RATE, 0.5, "std"), 0, 3)
    both = calibrate("ball", files, Wanted(RATE, 0.5, "std"), 0, 8, searched=3)
    assert both.thresholds == few.thresholds
    assert (both.figures["episodes"], few.figures["episodes"]) == (8, 3)
    with pytest.raises(ValueError, match="searched: 9, must be 1 to 8"):
        calibrate("ball", files, Wanted(RATE, 0.5, "std"), 0, 8, searched=9)


def test_deviations_of_a_log_are_those_that_the_robot_saw(files: PolicyFiles, found: Calibration) -> None:
    settings = replace(found, smoothing=0.3, normalization="average", thresholds={"deviation": 0.4})
    log = logs(files, settings, ["adahi"], range(3))["adahi"]
    again = deviations(log, files.load().draft.action_scale, 0.3, "average")
    np.testing.assert_array_equal(again, log.deviation)


def drawn_log(seed: int, steps: int = 60, episodes: int = 10) -> Log:
    """A log of hybrid inference with actions at random, and verdicts by lot."""
    draw = np.random.default_rng(seed)
    drafted, executed = draw.normal(size=(2, steps, episodes, 2))
    active = np.ones((steps, episodes), dtype=bool)
    active[steps // 2 :, ::3] = False
    accepted = draw.random((steps, episodes, 2)) < 0.5
    zeros = np.zeros((steps, episodes))
    return Log(active, active, zeros, zeros, accepted, drafted, executed, ~active, zeros, ~active)


VARIANTS = [(s, n) for s in SMOOTHINGS for n in NORMALIZATIONS]


def test_too_few_episodes_hold_nothing_out() -> None:
    log = drawn_log(1, episodes=FOLDS - 1)
    assert best_variant(log, np.ones(2), VARIANTS)[1] is None
    assert best_variant(drawn_log(1, episodes=FOLDS), np.ones(2), VARIANTS)[1] is not None


@pytest.mark.parametrize("accepted", [True, False])
@pytest.mark.filterwarnings("error")
def test_a_target_that_says_always_the_same_ranks_nothing(accepted: bool) -> None:
    log = drawn_log(1)
    same = replace(log, accepted=np.full_like(log.accepted, accepted))
    assert best_variant(same, np.ones(2), VARIANTS)[1] == 0.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rate": 0.0}, "rate: 0.0, must be between 0 and 1"),
        ({"rate": 1.5}, "rate: 1.5, must be between 0 and 1"),
        ({"rejection": -0.1}, "rejection: -0.1, must be 0 to 1"),
        ({"episodes": 0}, "episodes: 0, must be at least 1"),
        ({"smoothing": 0.0}, "smoothing: 0.0, must be above 0 and at most 1"),
        ({"normalization": "max"}, "normalization: 'max', must be one of average, std"),
        ({"draft_temperature": 0.0}, "draft_temperature: 0.0, must be above 0"),
        ({"task": "billiards"}, "task: 'billiards', expected one of ball"),
    ],
)
def test_wrong_settings_are_named_before_anything_is_run(
    files: PolicyFiles, changes: dict[str, Any], message: str
) -> None:
    messages: list[str] = []
    given = {"task": "ball", "episodes": 2, "rate": 0.5, **changes}
    task, episodes = given.pop("task"), given.pop("episodes")
    with pytest.raises(ValueError, match=message):
        calibrate(task, files, Wanted(**given), 0, episodes, say=messages.append)
    assert messages == []


def test_the_file_and_the_picture_of_a_calibration(found: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "new" / "ball.yaml"
    found.save(path, "deviation", "adahi thresholds ball")
    assert load_calibration(path) == found
    assert yaml.safe_load(path.read_text())["/**"]["ros__parameters"]["gate"]["name"] == "deviation"
    draw_calibrations([found, found], path.with_suffix(".png"))
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")

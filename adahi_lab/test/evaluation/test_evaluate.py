from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test.toys import assert_same as assert_same_log

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation import evaluate
from adahi_lab.evaluation.evaluate import (
    Comparison,
    Outcome,
    Run,
    evaluate_methods,
    held_out,
    outcome_figures,
    play,
    play_all,
    reference_among,
)
from adahi_lab.evaluation.metrics import information_age, mcnemar
from adahi_lab.evaluation.rollout import Log
from adahi_lab.methods.methods import METHODS, on_every_task

KEYS = {"success_rate", "success_ci95", "transmission_rate", "true_skip_ratio", "mse", "gate", "threshold"}
KEYS |= {"success_at_end", "subtasks", "subtasks_completed", "rejection_rate", "information_age"}
KEYS |= {"held_share", "steps_to_success"}
Figures = Mapping[str, Mapping[str, Any]]


@pytest.fixture(scope="module")
def expert() -> Trajectories:
    return held_out("ball", seed=0)


@pytest.fixture(scope="module")
def figures(comparison: Comparison) -> Figures:
    return evaluate_methods(comparison, on_every_task(plans=True), range(8))


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers(item)]
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [value] if isinstance(value, (int, float)) else []


def assert_same(one: Outcome, other: Outcome) -> None:
    assert_same_log(one.log, other.log)
    for name in ("success", "completed", "fulfilled"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


def test_figures_are_plain_finite_json(figures: Figures) -> None:
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    assert all(map(math.isfinite, numbers(figures)))
    assert list(figures) == on_every_task(plans=True)
    for name, values in figures.items():
        assert values.keys() >= KEYS
        low, high = values["success_ci95"]
        assert 0 <= low <= values["success_rate"] <= high <= 1
        assert values["success_at_end"] <= values["success_rate"]
        assert values["mse"] > 0
        assert len(values["rejection_rate"]) == (0 if name.startswith("plan") else 2)


def test_methods_differ_as_their_names_say(figures: Figures) -> None:
    rates = {name: values["transmission_rate"] for name, values in figures.items()}
    assert rates["hybrid"] == rates["target"] == 1.0
    assert rates["draft"] == 0.0
    gated = ("adahi", "random", "random_cool", "uncertainty", "oracle")
    assert all(0 < rates[name] < 1 for name in gated)
    assert 1 / 2 <= rates["plan_2"] < 2 / 3  # the last plan of an episode is cut short
    assert rates["plan_2"] > rates["plan_4"] > rates["plan_8"] >= 1 / 8
    for name in ("hybrid", "target", "plan_2", "plan_4", "plan_8"):
        assert figures[name]["true_skip_ratio"] is None
    for name in (*gated, "draft"):
        assert 0 <= figures[name]["true_skip_ratio"] <= figures[name]["true_skip_ratio_primary"] <= 1
    assert figures["oracle"]["true_skip_ratio"] == max(figures[name]["true_skip_ratio"] for name in gated)
    assert (figures["adahi"]["gate"], figures["adahi"]["threshold"]) == ("deviation", 0.4)
    assert (figures["plan_8"]["gate"], figures["plan_8"]["threshold"]) == ("age", 7)


def test_every_method_is_compared_with_the_target_episode_by_episode(
    comparison: Comparison, figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert figures["target"]["against"] is None
    assert {values["against"]["method"] for values in figures.values() if values["against"]} == {"target"}
    outcomes = {name: play(Run(METHODS[name], comparison, range(8))) for name in ("draft", "plan_2")}
    outcomes["draft"].success[:] = np.arange(8) < 1
    outcomes["plan_2"].success[:] = np.arange(8) >= 1
    monkeypatch.setattr(evaluate, "play_runs", lambda *arguments: outcomes)
    found = evaluate_methods(comparison, ["draft", "plan_2"], range(8), against="plan_2")
    assert found["plan_2"]["against"] is None
    expected = mcnemar(outcomes["draft"].success, outcomes["plan_2"].success)
    assert found["draft"]["against"] == {"method": "plan_2", **expected._asdict()}
    assert (expected.only_this, expected.only_other) == (1, 7)
    assert str(expected) == "1:7 (0.07)"


def test_the_reference_is_among_those_compared() -> None:
    assert reference_among(["adahi", "target"]) == "target"
    assert reference_among(["adahi", "draft"]) == "adahi"
    assert reference_among(["adahi", "target"], "adahi") == "adahi"
    message = "^against: 'hybrid', must be one of the methods compared: adahi, target$"
    with pytest.raises(ValueError, match=message):
        reference_among(["adahi", "target"], "hybrid")


def test_outcomes_do_not_depend_on_the_number_of_workers(comparison: Comparison) -> None:
    names = ["adahi", "plan_4"]
    reported: list[tuple[str, int]] = []
    alone = play_all(comparison, names, range(8), 1)
    shared = play_all(comparison, names, range(8), 2, lambda *done: reported.append(done))
    assert list(shared) == names
    for name in names:
        assert_same(shared[name], alone[name])
    assert sorted(reported) == [("adahi", 8), ("plan_4", 8)]


def outcome(completed: list[list[bool]], fulfilled: list[list[bool]]) -> Outcome:
    """One step of each episode, skipped and accepted."""
    episodes = len(completed)
    yes, zero = np.ones((1, episodes), dtype=bool), np.zeros((1, episodes))
    action = np.zeros((1, episodes, 2))
    log = Log(yes, ~yes, zero, zero, yes[..., None], action, action, ~yes, zero, ~yes)
    parts = np.array(completed)
    return Outcome(log, np.array([all(each) for each in completed]), parts, np.array(fulfilled))


def test_calls_are_counted_while_an_episode_lasts() -> None:
    nothing = outcome([[True], [True], [False], [False]], [[True]] * 4)
    active = np.array([[True, True, True, False], [True, True, False, False]])
    sent = np.array([[True, True, False, True], [False, True, True, False]])  # two where nothing goes on
    accepted, actions = active[..., None], np.zeros((2, 4, 2))
    nothing_of = active * 0.0
    log = Log(active, sent, nothing_of, nothing_of, accepted, actions, actions, ~active, nothing_of, ~sent)
    figures = outcome_figures(replace(nothing, log=log))
    assert figures["calls_per_episode"] == 3 / 4
    assert figures["calls_per_episode"] == figures["transmission_rate"] * figures["steps_per_episode"]
    assert figures["steps_to_success"] == 4 / 2
    assert figures["held_share"] == 2 / 5  # of the steps while an episode lasts
    failed = replace(nothing, success=np.zeros(4, dtype=bool))
    assert outcome_figures(failed)["steps_to_success"] is None


def test_a_gate_that_was_not_calibrated_is_refused_before_anything_is_run(comparison: Comparison) -> None:
    partly = replace(comparison, calibration=replace(comparison.calibration, thresholds={"deviation": 0.8}))
    reported: list[tuple[str, int]] = []
    expected = "thresholds.random: missing, the calibration has deviation"
    with pytest.raises(ValueError, match=re.escape(expected)):
        evaluate_methods(partly, ["adahi", "random"], range(1), 1, lambda *done: reported.append(done))
    assert reported == []


def test_the_age_of_information_counts_steps_with_a_reply() -> None:
    age = np.array([[np.inf, 0.0], [2.0, np.inf], [4.0, 9.0]])
    active = np.array([[True, True], [True, True], [True, False]])
    found = information_age(age, active)
    assert found["mean"] == 2.0
    assert information_age(age[:1, :1], active[:1, :1]) == {"mean": None, "p95": None}


def test_without_a_calibration_only_methods_with_thresholds_are_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evaluate, "shipped", lambda file: False)
    comparison = Comparison.shipped("ball", 0)
    assert comparison.calibration.thresholds == {}
    assert METHODS["plan_4"].threshold(comparison.bench()) == ("age", 3.0)
    with pytest.raises(ValueError, match="deviation"):
        METHODS["adahi"].threshold(comparison.bench())

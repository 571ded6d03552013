from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adahi_ros.evaluation.evaluate import Policies, evaluate_method, held_out
from adahi_ros.evaluation.methods import METHODS
from adahi_ros.policy.backends import load_policy
from adahi_ros.speculation.parameter_file import Calibration
from adahi_ros.trajectories import Trajectories

KEYS = {"success_rate", "success_ci95", "transmission_rate", "true_skip_ratio", "mse", "gate", "threshold"}


@pytest.fixture(scope="module")
def expert() -> Trajectories:
    return held_out("ball", seed=0)


@pytest.fixture(scope="module")
def figures(policies: Policies, calibration: Calibration, expert: Trajectories) -> dict[str, dict[str, Any]]:
    return {
        name: evaluate_method(name, "ball", policies, calibration, 5, range(8), expert) for name in METHODS
    }


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers(item)]
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [value] if isinstance(value, (int, float)) else []


def test_figures_are_plain_finite_json(figures: dict[str, dict[str, Any]]) -> None:
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    assert all(map(math.isfinite, numbers(figures)))
    for values in figures.values():
        assert values.keys() >= KEYS
        low, high = values["success_ci95"]
        assert 0 <= low <= values["success_rate"] <= high <= 1
        assert values["mse"] > 0
        assert len(values["rejection_rate"]) == 2


def test_methods_differ_as_their_names_say(figures: dict[str, dict[str, Any]]) -> None:
    rates = {name: values["transmission_rate"] for name, values in figures.items()}
    assert rates["hybrid"] == rates["target"] == 1.0
    assert rates["draft"] == 0.0
    assert all(0 < rates[name] < 1 for name in ("adahi", "random", "uncertainty"))
    assert figures["hybrid"]["true_skip_ratio"] is figures["target"]["true_skip_ratio"] is None
    for name in ("adahi", "draft", "random", "uncertainty"):
        assert 0 <= figures[name]["true_skip_ratio"] <= 1


def test_the_same_seed_gives_the_same_numbers(
    figures: dict[str, dict[str, Any]], policies: Policies, calibration: Calibration, expert: Trajectories
) -> None:
    seen: list[int] = []
    again = evaluate_method("adahi", "ball", policies, calibration, 5, range(8), expert, seen.append)
    assert again == figures["adahi"]
    assert seen == list(range(1, len(seen) + 1))
    other = evaluate_method("adahi", "ball", policies, calibration, 6, range(8), expert)
    assert other["rejection_rate"] != again["rejection_rate"]


def test_held_out_episodes_are_the_experts_own(expert: Trajectories) -> None:
    assert expert.task == "ball"
    np.testing.assert_array_equal(expert.observations, held_out("ball", seed=0).observations)
    assert not np.array_equal(expert.goals[:5], held_out("ball", seed=1).goals[:5])


def test_policies_of_two_tokenizers_are_refused(
    checkpoints: Path, make_checkpoints: Callable[..., Path]
) -> None:
    draft = load_policy(checkpoints / "draft", "torch")
    target = load_policy(make_checkpoints(seed=1) / "target", "torch")
    ours, theirs = draft.decoder.fingerprint, target.decoder.fingerprint
    with pytest.raises(ValueError, match=f"the draft's is {ours}, the target's {theirs}"):
        Policies(draft, target)


def test_a_gate_that_was_not_calibrated_is_refused(
    policies: Policies, calibration: Calibration, expert: Trajectories
) -> None:
    partly = replace(calibration, thresholds={"deviation": 0.8})
    expected = "thresholds.random: missing, the calibration has deviation"
    with pytest.raises(ValueError, match=re.escape(expected)):
        evaluate_method("random", "ball", policies, partly, 0, range(1), expert)

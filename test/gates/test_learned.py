"""The learned gate: what it makes of signs, and of files."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.signature import OBSERVATION, Observations
from adahi_ros.gates.gate_config import ThresholdedGate
from adahi_ros.gates.interface import GateContext, PlanContext
from adahi_ros.gates.learned import (
    SIGNS,
    HarmModel,
    LearnedGate,
    Signs,
    along,
    load_harm_model,
    save_harm_model,
)

F = len(SIGNS)


def context(age: np.ndarray, left: np.ndarray) -> GateContext:
    robots = len(age)
    seen, nothing = np.zeros((robots, 3)), np.zeros(robots)
    course = PlanContext(np.zeros((robots, 2)), np.zeros((robots, 2)), np.zeros((robots, 4, 2)), left)
    observations = Observations({OBSERVATION: seen[:, None]}, {})
    return GateContext(0, {OBSERVATION: seen}, observations, None, nothing, age, nothing, None, course)


def test_what_is_written_is_read_to_the_bit(harm_model: HarmModel, harm_file: Path) -> None:
    for name, values in vars(load_harm_model(harm_file)).items():
        np.testing.assert_array_equal(values, vars(harm_model)[name])


def test_the_harm_is_the_networks_prediction_along_the_curve(harm_model: HarmModel) -> None:
    signs = np.random.default_rng(2).normal(size=(7, F))
    np.testing.assert_allclose(harm_model.harm(signs), 2.0 * np.tanh(0.1 * signs.sum(axis=1)))


@pytest.mark.parametrize("nothing", [np.nan, np.inf, -np.inf])
def test_a_sign_that_says_nothing_is_as_usual(harm_model: HarmModel, nothing: float) -> None:
    usual = np.random.default_rng(3).normal(size=F)
    model = replace(harm_model, mean=usual)
    np.testing.assert_array_equal(model.harm(np.full((1, F), nothing)), model.harm(usual[None]))


def test_no_sign_counts_more_than_it_may(harm_model: HarmModel) -> None:
    np.testing.assert_array_equal(
        harm_model.harm(np.full((1, F), 1e300)), harm_model.harm(np.full((1, F), 5.0))
    )


def test_a_curve_rises_beyond_its_ends() -> None:
    x = np.linspace(-3, 4, 50)
    for curve in (([0.0, 1.0, 2.0], [0.0, 0.5, 3.0]), ([0.5], [1.0])):
        values = along(x, *map(np.array, curve))
        assert (np.diff(values) > 0).all()
        np.testing.assert_allclose(along(np.array(curve[0]), *map(np.array, curve)), curve[1])


def test_the_gate_reads_what_the_others_score_and_asks_without_a_plan(harm_file: Path) -> None:
    seen = context(np.array([1.0, 4.0, np.inf]), np.array([3, 1, 0]))
    signs = Signs().read(seen)
    assert signs.shape == (3, F)
    named = dict(zip(SIGNS, signs.T, strict=True))
    np.testing.assert_array_equal(named["age"], [1.0, 4.0, np.inf])
    np.testing.assert_array_equal(named["left"], [3.0, 1.0, 0.0])
    score = LearnedGate(str(harm_file)).score(seen)
    np.testing.assert_allclose(score[:2], load_harm_model(harm_file).harm(signs[:2]))
    assert np.isinf(score[2])


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"mean": np.zeros(F + 1)}, f"mean: of shape ({F + 1},), must be ({F},)"),
        ({"scale": np.zeros(F)}, "scale: must be above 0"),
        ({"weight_1": np.full((1, 1), np.nan)}, "weight_1: must be finite"),
        ({"predicted": np.array([1.0, 0.0])}, "predicted, measured: must rise"),
        ({"bias_0": np.zeros(0)}, "bias_0, predicted: of 0 and 2"),
    ],
)
def test_a_file_of_anything_else_is_refused(
    harm_model: HarmModel, tmp_path: Path, change: dict[str, np.ndarray], fault: str
) -> None:
    path = tmp_path / "bad.safetensors"
    save_harm_model(path, replace(harm_model, **change))
    with pytest.raises(CheckpointError, match=re.escape(fault)):
        load_harm_model(path)


def test_weights_that_are_missing_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such checkpoint"):
        ThresholdedGate("learned", arguments={"file": str(tmp_path / "none.safetensors")})
    with pytest.raises(ValueError, match="file: '', must be the weights"):
        ThresholdedGate("learned")

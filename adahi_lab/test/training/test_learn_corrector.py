"""A corrector that learns of new plans: what it is shown, and what must never happen to it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test.toys import float32

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.loaded_policies import PLANS, PolicyFiles
from adahi_lab.training.corrector_training import learn_on, save_corrector, scales_of
from adahi_lab.training.fitting import FitConfig, Run
from adahi_lab.training.learn import LearningConfig
from adahi_lab.training.learn_corrector import CorrectorLearner, corrected_plans
from adahi_lab.training.learn_rounds import Rounds, learn_in_rounds
from adahi_lab.training.recipes import CorrectorRecipe
from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorConfig, load_corrector
from adahi_ros.policies.corrector.corrector_features import feature_count
from adahi_ros.policies.corrector.corrector_network import CorrectorNetwork
from adahi_ros.policies.corrector.corrector_torch import load_network

HOW = Rounds(rounds=2, episodes=2, ask="corrector_4", evaluated=2, seed=3)
RECIPE = CorrectorRecipe(1, {"hidden": 4}, FitConfig(20, 32, warmup=0), asking_rates=(0.3,), samples=2)
FREE = LearningConfig(steps=20, worse=np.inf)


@pytest.fixture(scope="module")
def begin(
    files: PolicyFiles,
    demonstrations: Callable[[int], Trajectories],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Policies with a corrector that has learned nothing."""
    folder = tmp_path_factory.mktemp("begin") / "policies"
    shutil.copytree(files.folder, folder)
    data = demonstrations(2)
    torch.manual_seed(0)
    count = feature_count(6, 2, 2)
    network = CorrectorNetwork(2, 4, torch.zeros(count), torch.ones(count))
    config = CorrectorConfig(6, 2, 2, 8, 4)
    acted = data.actions.min(axis=0), data.actions.max(axis=0)
    save_corrector(folder / PLANS, "corrector", network, config, scales_of(data, True), acted, {})
    return folder


@pytest.fixture(scope="module")
def learner(begin: Path, calibration: Calibration) -> Callable[..., CorrectorLearner]:
    def make(
        how: Rounds = HOW, config: LearningConfig = FREE, recipe: CorrectorRecipe = RECIPE
    ) -> CorrectorLearner:
        return CorrectorLearner("ball", begin, recipe, calibration, how, config, old_episodes=2)

    return make


def test_what_is_taught_is_learned(begin: Path) -> None:
    network = load_network(load_corrector(begin / PLANS / "corrector"))
    draw = np.random.default_rng(0)
    read = draw.normal(size=(200, len(network.mean))).astype(np.float32)
    wanted = np.tile(float32([0.8, -0.8]), (200, 1))
    nothing = read, np.zeros_like(wanted)
    fit = FitConfig(200, 64, learning_rate=1e-2, warmup=0)

    def error(rehearsal: float) -> float:
        learned, _ = learn_on(network, nothing, (read, wanted), rehearsal, fit, Run(0))
        correction, _ = learned(torch.from_numpy(read))
        return float(np.abs(correction.numpy() - wanted).mean())

    assert error(0.0) < 0.1
    assert error(0.5) > 0.3  # between the two
    assert error(1.0) > 0.6


def test_rounds_write_what_was_learned(
    begin: Path, learner: Callable[..., CorrectorLearner], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    figures = learn_in_rounds(learner(), begin, out, HOW, "adahi lab learn")
    updates = [each["update"] for each in figures["rounds"][:-1]]
    assert updates[1]["corrections"] == updates[0]["new"] + updates[1]["new"]
    assert updates[1]["held_out"]["before"] == updates[0]["held_out"]["after"]
    assert [each["share"] for each in updates] == [1.0, 1.0]
    json.dumps(figures, allow_nan=False)
    policies = PolicyFiles(out, "onnxruntime").load()
    assert policies.corrector is not None
    assert policies.corrector.digest != load_corrector(begin / PLANS / "corrector").digest()
    assert (out / "draft.safetensors").read_bytes() == (begin / "draft.safetensors").read_bytes()

    def stop(line: str) -> None:
        raise KeyboardInterrupt

    again = tmp_path / "again"
    with pytest.raises(KeyboardInterrupt):
        learn_in_rounds(learner(), begin, again, HOW, "adahi lab learn", stop)
    other = replace(RECIPE, beta=0.5)
    with pytest.raises(ValueError, match="from a run with other settings"):
        learn_in_rounds(learner(recipe=other), begin, again, HOW, "adahi lab learn")
    assert learn_in_rounds(learner(), begin, again, HOW, "adahi lab learn") == figures
    weights = f"{PLANS}/corrector.safetensors"
    assert (again / weights).read_bytes() == (out / weights).read_bytes()


def test_the_bound_is_above_the_best_and_not_the_last(
    begin: Path, learner: Callable[..., CorrectorLearner]
) -> None:
    files, before = PolicyFiles(begin, "onnxruntime"), learner()
    after = learner(config=replace(FREE, worse=0.5))
    after.restore(before.state(), {"update": {"held_out": {"best": 1e-6}}})
    update = after.learn(files, 1)
    assert update["share"] == 0.0
    assert update["held_out"]["bound"] == pytest.approx(1.5e-6)
    assert update["held_out"]["best"] == 1e-6


def test_what_would_forget_too_much_is_refused(
    begin: Path, learner: Callable[..., CorrectorLearner], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target that wants the impossible teaches nothing."""
    real = corrected_plans

    def broken(*arguments: Any) -> Any:
        found = real(*arguments)
        return replace(found, wanted=np.full_like(found.wanted, 50.0))

    monkeypatch.setattr("adahi_lab.training.learn_corrector.corrected_plans", broken)
    how = replace(HOW, rounds=1, evaluated=0)
    config = LearningConfig(steps=200, rehearsal=0.0, worse=0.0)
    figures = learn_in_rounds(learner(how, config), begin, tmp_path / "out", how, "")
    update = figures["rounds"][0]["update"]
    assert update["share"] == 0.0
    assert update["held_out"]["after"] == update["held_out"]["before"] < update["held_out"]["learned"]
    weights = load_network(load_corrector(begin / PLANS / "corrector")).state_dict()
    same = load_network(load_corrector(tmp_path / "out" / PLANS / "corrector")).state_dict()
    assert all(torch.equal(value, same[name]) for name, value in weights.items())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ask": "plan_4"}, "ask: 'plan_4', must be of corrected plans"),
        ({"ask": "corrector_4+2"}, "must be of corrected plans that are waited for"),
        ({"ask": "corrector_9"}, "the target plans only 8 actions"),
        ({"rate": 0.5}, "rate: 0.5, must be left out"),
        ({"explore": "hybrid"}, "explore: hybrid, must be left out"),
    ],
)
def test_what_does_not_fit_is_refused(
    changes: dict[str, Any], message: str, learner: Callable[..., CorrectorLearner]
) -> None:
    with pytest.raises(ValueError, match=message):
        learner(replace(HOW, **changes))

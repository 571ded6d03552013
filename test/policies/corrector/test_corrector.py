"""What a corrector reads, and what its files say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training.corrector_loss import weights_count
from adahi_lab.training.corrector_training import running, save_corrector, scales_of, train_corrector
from adahi_lab.training.fitting import FitConfig, Run
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.signature import GOAL, OBSERVATION, Feature
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.corrector.corrector import RANGE_MARGIN, Corrector
from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorConfig, load_corrector
from adahi_ros.policies.corrector.corrector_features import (
    FeatureScales,
    PlanView,
    feature_count,
    features,
)

OBS, G, A, T, B = 6, 2, 2, 5, 4
CONFIG = CorrectorConfig(OBS, G, A, T, hidden=8)


@pytest.fixture(scope="module")
def scales(demonstrations: Callable[[int], Trajectories]) -> FeatureScales:
    return scales_of(demonstrations(G), with_goal=True)


@pytest.fixture
def view() -> PlanView:
    """Four robots with three of five actions left."""
    draw = np.random.default_rng(2)
    ahead = draw.normal(size=(B, T, A)).astype(np.float32)
    ahead[:, 3:] = ahead[:, 2:3]
    newest, previous, at_request = draw.normal(scale=0.3, size=(3, B, OBS)).astype(np.float32)
    goal = draw.normal(size=(B, G)).astype(np.float32)
    return PlanView(newest, previous, at_request, goal, ahead, np.full(B, 3), np.full(B, 2))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, demonstrations: Callable[[int], Trajectories]) -> Path:
    """A corrector `corrector`, a little trained."""
    folder, data, draw = tmp_path_factory.mktemp("corrector"), demonstrations(G), np.random.default_rng(1)
    read = draw.normal(size=(200, feature_count(OBS, G, A))).astype(np.float32)
    network, _ = train_corrector(read, 0.3 * read[:, :A], 8, FitConfig(20, 32, warmup=0), Run(1))
    action_range = (data.actions.min(axis=0), data.actions.max(axis=0))
    save_corrector(folder, "corrector", network, CONFIG, scales_of(data, True), action_range, {"steps": 20})
    return folder


def test_a_corrector_comes_back_as_it_was_saved(folder: Path, scales: FeatureScales, tmp_path: Path) -> None:
    checkpoint = load_corrector(folder / "corrector")
    assert checkpoint.training == {"steps": 20}
    assert checkpoint.config == vars(CONFIG)
    for name, value in vars(scales).items():
        np.testing.assert_array_equal(getattr(checkpoint.scales, name), value, name)
    signature = checkpoint.signature
    assert (signature.history, signature.horizon, signature.action_dim) == (1, T, A)
    assert signature.features == (Feature(OBSERVATION, OBS),)
    assert signature.conditions == (Feature(GOAL, G),)
    for suffix in ("json", "safetensors"):
        shutil.copy(folder / f"corrector.{suffix}", tmp_path / f"other.{suffix}")
    assert load_corrector(tmp_path / "other.json").digest() == checkpoint.digest()


def test_onnx_says_what_torch_says(folder: Path, view: PlanView, scales: FeatureScales) -> None:
    data = np.random.default_rng(1).normal(size=(200, feature_count(OBS, G, A))).astype(np.float32)
    network, _ = train_corrector(data, 0.3 * data[:, :A], 8, FitConfig(20, 32, warmup=0), Run(1))
    checkpoint = load_corrector(folder / "corrector")
    assert checkpoint.parameters == weights_count(network)
    one, other = Corrector(checkpoint), Corrector(checkpoint, running(network))
    found, expected = one.correct(view), other.correct(view)
    np.testing.assert_allclose(
        found.actions / scales.action_scale, expected.actions / scales.action_scale, atol=1e-4
    )
    np.testing.assert_allclose(found.expected_error, expected.expected_error, atol=1e-4)
    assert (found.expected_error > 0.0).all()
    assert np.abs(found.actions - view.ahead[:, 0]).max() > 0.0
    alone = one.correct(PlanView(*(values[:1] for values in vars(view).values())))
    np.testing.assert_allclose(alone.actions, found.actions[:1], atol=1e-5)


def test_a_correction_is_in_action_scales_and_far_from_all_is_no_action(folder: Path, view: PlanView) -> None:
    def one(read: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.ones((len(read), A), np.float32), np.zeros(len(read), np.float32)

    checkpoint = load_corrector(folder / "corrector")
    corrector = Corrector(checkpoint, one)
    corrected = corrector.correct(view).actions
    np.testing.assert_allclose(
        corrected - view.ahead[:, 0], np.tile(corrector.action_scale, (B, 1)), rtol=1e-4
    )
    edge = checkpoint.action_low - RANGE_MARGIN * corrector.action_scale
    actions = np.stack([0.99 * edge, 1.01 * edge, np.full(A, np.nan)]).astype(np.float32)[:, None]
    assert corrector.sound(actions).tolist() == [True, False, False]
    with pytest.raises(ValueError, match=r"action\[0\]: .*, must be from"):
        corrector.check(actions)


def test_without_a_plan_nothing_of_it_is_read(view: PlanView, scales: FeatureScales) -> None:
    hidden = view.without_plan()
    other = replace(
        view, at_request=view.previous, ahead=1.0 + view.ahead, left=view.left - 1, age=view.age + 1
    ).without_plan()
    np.testing.assert_array_equal(features(hidden, scales), features(other, scales))
    assert features(hidden, scales).shape == features(view, scales).shape
    seen = replace(view, observation=view.observation + 1.0).without_plan()
    assert not np.array_equal(features(hidden, scales), features(seen, scales))


@pytest.fixture(scope="module")
def alone(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network of `corrector`, saved as one that is told no plan."""
    there = Path(shutil.copytree(folder, tmp_path_factory.mktemp("alone") / "policies"))
    description = json.loads((there / "corrector.json").read_text())
    description["config"]["horizon"] = 1
    (there / "distilled.json").write_text(json.dumps(description))
    shutil.copy(there / "corrector.safetensors", there / "distilled.safetensors")
    return there


@pytest.mark.parametrize("backend", ["torch", "onnxruntime"])
def test_what_receives_no_plan_is_a_policy_of_its_own(alone: Path, backend: str) -> None:
    policy = load_policy(alone / "distilled", backend)
    signature = policy.signature
    assert (signature.history, signature.horizon, signature.observation_dim, signature.goal_dim) == (
        2,
        1,
        OBS,
        G,
    )
    draw = np.random.default_rng(0)
    window = draw.normal(scale=0.3, size=(B, 2, OBS)).astype(np.float32)
    goal = draw.normal(size=(B, G)).astype(np.float32)
    draws = np.zeros((B, policy.draws))
    proposal = policy.propose(signature.observations(window, goal), draws)
    corrector = Corrector(load_corrector(alone / "distilled"))
    nothing = np.zeros((B, 1, A), np.float32)
    view = PlanView(window[:, 1], window[:, 0], window[:, 1], goal, nothing, np.ones(B), np.zeros(B))
    expected = corrector.correct(view)
    np.testing.assert_array_equal(proposal.actions[:, 0], expected.actions)
    np.testing.assert_array_equal(proposal.expected_error, expected.expected_error)
    assert policy.sound(proposal.actions).all()
    for changed in (signature.observations(window + 0.1, goal), signature.observations(window, goal + 1.0)):
        assert not np.allclose(policy.propose(changed, draws).actions, proposal.actions)


def test_a_corrector_of_plans_is_no_policy(alone: Path) -> None:
    with pytest.raises(CheckpointError, match="horizon: 5, must be 1: a corrector of plans is no policy"):
        load_policy(alone / "corrector", "onnxruntime")

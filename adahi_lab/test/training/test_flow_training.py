"""A flow learns plans that hang together, by its seed alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test.toys import two_ways

from adahi_lab.training.fitting import Run
from adahi_lab.training.flow_files import save_flow
from adahi_lab.training.flow_training import FlowFitConfig, train_flow
from adahi_ros.core.schema import checked
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy, Sampling

SIZE = {"width": 8, "layers": 1, "heads": 2, "head_width": 16, "head_layers": 1, "steps": 2}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    """Trained on two ways."""
    size = {**SIZE, "horizon": 4, "head_width": 32, "steps": 8}
    network, losses = train_flow(two_ways(), 1, size, FlowFitConfig(250, 128, 5e-3), Run(4))
    assert np.mean(losses[-20:]) < 0.5 * np.mean(losses[:5])
    folder = tmp_path_factory.mktemp("two_ways")
    save_flow(folder, "target", network, {})
    return load_policy(folder / "target", "torch")


def test_of_two_ways_a_plan_goes_one_from_beginning_to_end(policy: Policy) -> None:
    """Codes that are drawn apart from one another would mix them."""
    draws = np.random.default_rng(1).random((400, policy.draws))
    plans = policy.propose(policy.signature.nothing(400), draws).actions[..., 0]
    coherent = (plans > 0.0).all(axis=1) | (plans < 0.0).all(axis=1)
    assert coherent.mean() > 0.97  # signs drawn apart would agree in one of eight
    assert 0.35 < (plans[coherent, 0] > 0.0).mean() < 0.65
    assert np.median(np.abs(np.abs(plans) - 1.0)) < 0.2


def test_a_plan_goes_on_the_way_that_a_robot_has_committed_to(policy: Policy) -> None:
    draws = np.random.default_rng(1).random((400, policy.draws))
    for way in (-1.0, 1.0):
        agreed = []
        for steps in (1, 2, 3):
            sampling = Sampling(committed=np.full((400, steps, 1), way, np.float32))
            plans = policy.propose(policy.signature.nothing(400), draws, sampling).actions
            agreed.append((np.sign(plans[:, steps:]) == way).mean())
        assert 0.6 < agreed[0] < agreed[1] < agreed[2]  # with nothing committed, half of them
        assert agreed[1] > 0.8
        assert agreed[2] > 0.95


def test_a_flow_without_noise_in_one_step_makes_the_mean_plan(tmp_path: Path) -> None:
    size = {**SIZE, "horizon": 3, "steps": 1, "noise": 0.0}
    network, _ = train_flow(two_ways(), 1, size, FlowFitConfig(150, 64, 5e-3), Run(4))
    save_flow(tmp_path, "target", network, {})
    policy = load_policy(tmp_path / "target", "torch")
    draws = np.random.default_rng(1).random((50, policy.draws))
    plans = policy.propose(policy.signature.nothing(50), draws).actions
    assert np.ptp(plans, axis=0).max() < 1e-6  # no draw matters
    assert np.abs(plans).max() < 0.3  # between both ways


def test_a_discount_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="discount"):
        checked(FlowFitConfig, {"steps": 3, "discount": 0.0}, "fit")

"""A policy whose plans a flow makes of noise: its plans hang together, and its files say what they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training.fitting import Run
from adahi_lab.training.flow_files import save_flow
from adahi_lab.training.flow_training import FlowFitConfig, train_flow
from adahi_ros.core.signature import Observations
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.flow.flow_checkpoint import load_flow
from adahi_ros.policies.flow.flow_policy import RANGE_MARGIN, FlowPolicy, normal
from adahi_ros.policies.flow.flow_torch import load_network
from adahi_ros.policies.interface import Sampling

SIZE = {"width": 8, "layers": 1, "heads": 2, "head_width": 16, "head_layers": 1, "steps": 2}
HORIZON, WINDOW, BATCH = 3, 2, 7


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, demonstrations: Callable[[int], Trajectories]) -> Path:
    """Flow policies `told` (O 6, G 2, A 2, T 3, H 2) and `untold` (G 0), a little trained."""
    folder = tmp_path_factory.mktemp("flows")
    for name, goal_dim in (("told", 2), ("untold", 0)):
        size = {**SIZE, "horizon": HORIZON}
        network, _ = train_flow(
            demonstrations(goal_dim), WINDOW, size, FlowFitConfig(20, 32, warmup=0), Run(1)
        )
        save_flow(folder, name, network, {"steps": 20})
    return folder


def load(path: Path, backend: str = "torch") -> FlowPolicy:
    policy = load_policy(path, backend)
    assert isinstance(policy, FlowPolicy)
    return policy


def seen(policy: FlowPolicy, batch: int = BATCH) -> tuple[Observations, np.ndarray]:
    """Return observations and draws, always the same."""
    draw, signature = np.random.default_rng(5), policy.signature
    window = draw.normal(scale=0.3, size=(batch, signature.history, signature.observation_dim))
    goals = draw.normal(size=(batch, signature.goal_dim))
    observations = signature.observations(window.astype(np.float32), goals.astype(np.float32))
    return observations, draw.random((batch, policy.draws))


@pytest.mark.parametrize(("name", "goal_dim"), [("told", 2), ("untold", 0)])
def test_torch_and_onnx_make_the_same_plans(folder: Path, name: str, goal_dim: int) -> None:
    plans = {}
    for backend in ("torch", "onnxruntime"):
        policy = load(folder / name, backend)
        assert policy.draws == HORIZON * 2
        for batch in (1, BATCH):
            proposal = policy.propose(*seen(policy, batch))
            assert proposal.actions.shape == (batch, HORIZON, 2)
            assert proposal.actions.dtype == np.float32
            assert proposal.distribution is None
        plans[backend] = proposal.actions / policy.action_scale
    np.testing.assert_allclose(plans["torch"], plans["onnxruntime"], atol=1e-4)


def test_the_same_draws_make_the_same_plan_and_others_another(folder: Path) -> None:
    policy = load(folder / "told")
    observations, draws = seen(policy)
    first = policy.propose(observations, draws).actions
    np.testing.assert_array_equal(policy.propose(observations, draws).actions, first)
    other = policy.propose(observations, draws[::-1]).actions
    assert (other != first).any(axis=(1, 2)).sum() >= BATCH - 1  # the one in the middle keeps its draws


def test_plans_of_less_noise_are_nearer_to_one_another(folder: Path) -> None:
    policy = load(folder / "told")
    observations, _ = seen(policy, 1)
    draws = np.random.default_rng(2).random((200, policy.draws))
    repeated = observations.rows(np.zeros(200, dtype=int))
    spreads = [
        policy.propose(repeated, draws, Sampling(temperature)).actions.std(axis=0).max()
        for temperature in (1.0, 0.5, 0.1, 1e-9)
    ]
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[0] > 2 * spreads[2] > 0
    assert spreads[3] < 1e-6


def committed_to(policy: FlowPolicy, steps: int) -> np.ndarray:
    """Return what `BATCH` robots have committed to, every third of them to nothing, (BATCH, steps, A)."""
    actions = np.random.default_rng(8).normal(scale=0.3, size=(BATCH, steps, 2)).astype(np.float32)
    actions[::3] = np.nan
    return actions


@pytest.mark.parametrize("backend", ["torch", "onnxruntime"])
@pytest.mark.parametrize("name", ["told", "untold"])
def test_a_plan_begins_with_what_a_robot_has_committed_to(folder: Path, name: str, backend: str) -> None:
    policy = load(folder / name, backend)
    free = policy.propose(*seen(policy)).actions
    for steps in range(HORIZON + 1):
        committed = committed_to(policy, steps)
        actions = policy.propose(*seen(policy), Sampling(committed=committed)).actions
        np.testing.assert_array_equal(actions[::3], free[::3])
        some = np.arange(BATCH) % 3 > 0
        np.testing.assert_array_equal(actions[some, :steps], committed[some])
        if 0 < steps < HORIZON:
            assert (actions[some, steps:] != free[some, steps:]).any(axis=(1, 2)).all()


def test_torch_and_onnx_go_on_alike_from_what_is_committed(folder: Path) -> None:
    policies = [load(folder / "told", backend) for backend in ("torch", "onnxruntime")]
    sampling = Sampling(committed=committed_to(policies[0], 2))
    torches, onnxes = (policy.propose(*seen(policy), sampling).actions for policy in policies)
    np.testing.assert_allclose(torches, onnxes, atol=1e-4 * policies[0].action_scale.max())


def test_uniform_draws_become_standard_normal_ones() -> None:
    values = normal(np.random.default_rng(3).random((20_000, 4)))
    assert values.shape == (20_000, 4)
    np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=0.03)
    np.testing.assert_allclose(np.cov(values.T), np.eye(4), atol=0.04)
    np.testing.assert_allclose((values**4).mean(axis=0), 3.0, atol=0.25)


def test_a_policy_comes_back_as_it_was_saved(folder: Path, tmp_path: Path) -> None:
    first = load_flow(folder / "told")
    network = load_network(first)
    save_flow(tmp_path, "copy", network, {"steps": 7})
    second = load_flow(tmp_path / "copy.json")
    assert second.training == {"steps": 7}
    assert (second.config, second.parameters) == (first.config, first.parameters)
    assert second.digest() == first.digest()
    for name, value in load_network(second).state_dict().items():
        assert torch.equal(network.state_dict()[name], value), name


def test_what_is_far_from_every_demonstration_is_no_action(folder: Path) -> None:
    policy, checkpoint = load(folder / "told"), load_flow(folder / "told")
    highest = checkpoint.action_high + RANGE_MARGIN * checkpoint.action_scale
    actions = np.zeros((4, HORIZON, 2), np.float32)
    actions[1, 2, 1], actions[2, 0, 0], actions[3, 1, 0] = 0.99 * highest[1], np.nan, 1.01 * highest[0]
    assert policy.sound(actions).tolist() == [True, True, False, False]
    policy.check(actions[:2])
    for row, message in ((2, r"action\[0\]: nan, must be from"), (3, r"action\[0\]: .*, must be from")):
        with pytest.raises(ValueError, match=message):
            policy.check(actions[row : row + 1])


def test_a_regressions_plan_stays_within_the_demonstrations(
    demonstrations: Callable[[int], Trajectories], tmp_path: Path
) -> None:
    size = {**SIZE, "horizon": HORIZON, "steps": 1, "noise": 0.0}
    network, _ = train_flow(demonstrations(2), WINDOW, size, FlowFitConfig(20, 32, warmup=0), Run(1))
    torch.nn.init.constant_(network.velocity_out.bias, 50.0)  # far above every action
    save_flow(tmp_path, "mean", network, {"steps": 20})
    highest = load_flow(tmp_path / "mean").action_high
    for backend in ("torch", "onnxruntime"):
        policy = load(tmp_path / "mean", backend)
        actions = policy.propose(*seen(policy)).actions
        np.testing.assert_allclose(actions, np.broadcast_to(highest, actions.shape), atol=1e-6)

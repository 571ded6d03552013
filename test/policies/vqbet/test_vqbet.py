from __future__ import annotations

import pytest
import torch

from adahi_ros.policies.networks.transformer import InputMoments
from adahi_ros.policies.vqbet.vqbet_network import VQBeT
from adahi_ros.policies.vqbet.vqbet_sizes import VQBeTConfig

SIZE = {"width": 12, "layers": 2, "heads": 3, "head_hidden": 8}


def config(goal_dim: int = 2, chunk_length: int = 1, codebooks: int = 2) -> VQBeTConfig:
    return VQBeTConfig(
        observation_dim=3,
        goal_dim=goal_dim,
        action_dim=2,
        window_length=4,
        chunk_length=chunk_length,
        codebooks=codebooks,
        codebook_size=5,
        **SIZE,
    )


def network(sizes: VQBeTConfig, observation_scale: float = 1.0, observation_mean: float = 0.0) -> VQBeT:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        moments = InputMoments(
            torch.full((3,), observation_mean),
            torch.full((3,), observation_scale),
            torch.zeros(sizes.goal_dim),
            torch.ones(sizes.goal_dim),
        )
        model = VQBeT(sizes, moments, torch.tensor([2.0, 0.5]))
    return model.eval().requires_grad_(False)


def inputs(goal_dim: int, batch: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return (
        torch.randn(batch, 4, 3, generator=generator),
        torch.randn(batch, goal_dim, generator=generator),
    )


@pytest.mark.parametrize("goal_dim", [0, 2])
def test_no_step_sees_a_later_observation_and_every_step_sees_the_earlier(goal_dim: int) -> None:
    model = network(config(goal_dim))
    windows, goals = inputs(goal_dim)
    before = model.features(windows, goals)
    for changed in range(4):
        other = windows.clone()
        other[:, changed] += 1.0
        moved = (model.features(other, goals) - before).abs().amax(dim=(0, 2))
        assert (moved[:changed] < 1e-6).all()
        assert (moved[changed:] > 1e-4).all()

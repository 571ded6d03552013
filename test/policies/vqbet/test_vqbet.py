from __future__ import annotations

from dataclasses import replace

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
@pytest.mark.parametrize("chunk_length", [1, 3])
@pytest.mark.parametrize("codebooks", [1, 2, 3])
def test_shapes(goal_dim: int, chunk_length: int, codebooks: int) -> None:
    model = network(config(goal_dim, chunk_length, codebooks))
    windows, goals = inputs(goal_dim)
    assert model.features(windows, goals).shape == (6, 4, 12)
    logits, offsets = model(windows, goals)
    assert logits.shape == (6, codebooks, 5)
    assert offsets.shape == (6, codebooks, 5, chunk_length, 2)
    every_step, _ = model.heads(model.features(windows, goals))
    assert every_step.shape == (6, 4, codebooks, 5)
    torch.testing.assert_close(every_step[:, -1], logits)


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


def test_the_order_of_the_observations_matters() -> None:
    sizes = replace(config(2), layers=1)  # one layer without positions could not tell the order
    windows, goals = inputs(2)
    swapped = windows[:, [1, 0, 2, 3]]
    model = network(sizes)
    moved = (model.features(swapped, goals) - model.features(windows, goals))[:, -1].abs().amax(dim=-1)
    assert (moved > 1e-4).all()


def test_every_step_sees_the_goal() -> None:
    model = network(config(2))
    windows, goals = inputs(2)
    moved = (model.features(windows, goals + 1.0) - model.features(windows, goals)).abs().amax(dim=(0, 2))
    assert (moved > 1e-4).all()


def test_rows_do_not_mix() -> None:
    model = network(config(2))
    windows, goals = inputs(2)
    together, _ = model(windows, goals)
    alone = torch.cat([model(windows[row : row + 1], goals[row : row + 1])[0] for row in range(6)])
    torch.testing.assert_close(alone, together, rtol=1e-5, atol=1e-6)


def test_observations_are_taken_and_offsets_given_in_the_tasks_units() -> None:
    windows, goals = inputs(2)
    plain = network(config(2))
    shifted = network(config(2), observation_scale=10.0, observation_mean=4.0)
    logits, offsets = plain(windows, goals)
    other_logits, other_offsets = shifted(10.0 * windows + 4.0, goals)
    torch.testing.assert_close(other_logits, logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(other_offsets, offsets, rtol=1e-4, atol=1e-5)
    plain.action_scale *= 3.0
    torch.testing.assert_close(plain(windows, goals)[1], 3.0 * offsets)


def test_parameters_are_counted() -> None:
    attention, mlp = 4 * 12 * 12 + 4 * 12, 8 * 12 * 12 + 5 * 12
    blocks = 2 * (attention + mlp + 2 * 2 * 12)
    tokens = (3 + 1) * 12 + (2 + 1) * 12 + 5 * 12
    heads = 2 * (12 * 8 + 8) + (8 + 1) * 10 + (8 + 1) * 20
    assert network(config(2)).parameters_count == tokens + blocks + 2 * 12 + heads

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from torch import nn

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training.fitting import FitConfig, Run, fit
from adahi_lab.training.step_dataset import step_goals
from adahi_lab.training.tokenizer import ActionTokenizer, TokenizerConfig
from adahi_lab.training.vqbet_training import (
    OFFSET_CODES,
    CodeFitConfig,
    focal_loss,
    policy_loss,
    train_policy,
    train_tokenizer,
)

TOKENIZER = TokenizerConfig(2, codebooks=2, codebook_size=4, latent_dim=8, hidden=16)
SIZE = {"width": 8, "layers": 1, "heads": 2, "head_hidden": 16}
FOUR = CodeFitConfig(4, 32, warmup=1)

Train = Callable[[CodeFitConfig, Run], tuple[nn.Module, list[float]]]


class KilledError(Exception):
    """Stands for whatever ends a training run early."""


@pytest.fixture(scope="module")
def data(demonstrations: Callable[[int], Trajectories]) -> Trajectories:
    return demonstrations(2)


@pytest.fixture(scope="module")
def tokenizer(data: Trajectories) -> ActionTokenizer:
    return train_tokenizer(data, TOKENIZER, FitConfig(20, 64), Run(0))[0]


@pytest.fixture(params=["tokenizer", "policy", "averaged policy"])
def train(request: pytest.FixtureRequest, data: Trajectories, tokenizer: ActionTokenizer) -> Train:
    if request.param == "tokenizer":
        return lambda config, run: train_tokenizer(data, TOKENIZER, config, run)
    if request.param == "averaged policy":
        return lambda config, run: train_policy(data, tokenizer, 3, SIZE, replace(config, average=0.9), run)
    return lambda config, run: train_policy(data, tokenizer, 3, SIZE, config, run)


def kill_at(step: int) -> Callable[[int, float], None]:
    def on_step(done: int, loss: float) -> None:
        if done == step:
            raise KilledError

    return on_step


def assert_same_weights(one: nn.Module, other: nn.Module) -> None:
    other_weights = other.state_dict()
    for name, value in one.state_dict().items():
        assert torch.equal(value, other_weights[name]), name


def test_killed_and_resumed_ends_with_the_very_same_weights(train: Train, tmp_path: Path) -> None:
    whole, losses = train(FOUR, Run(5))
    state = tmp_path / "new" / "state.safetensors"
    with pytest.raises(KilledError):  # at step 4: the state of step 2 is the last on disk
        train(FOUR, Run(5, state, save_every=2, on_step=kill_at(4)))
    seen: list[tuple[int, float]] = []
    resumed, all_losses = train(FOUR, Run(5, state, on_step=lambda done, loss: seen.append((done, loss))))
    assert [done for done, _ in seen] == [3, 4]
    assert all_losses == losses
    assert [loss for _, loss in seen] == losses[2:]
    assert_same_weights(resumed, whole)
    finished, _ = train(FOUR, Run(5, state, on_step=kill_at(1)))  # nothing left to do
    assert_same_weights(finished, whole)
    assert not finished.training


def test_the_seed_decides_and_torchs_own_generator_is_left_alone(train: Train) -> None:
    before = torch.random.get_rng_state()
    first, losses = train(FOUR, Run(1))
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.rand(3)
    same, same_losses = train(FOUR, Run(1))
    assert same_losses == losses
    assert_same_weights(first, same)
    _, other_losses = train(FOUR, Run(2))
    assert other_losses != losses


def test_a_state_of_other_settings_is_refused(train: Train, tmp_path: Path) -> None:
    state = tmp_path / "state.safetensors"
    train(FOUR, Run(1, state))
    for config, seed in ((FOUR, 2), (replace(FOUR, steps=8), 1), (replace(FOUR, learning_rate=1e-4), 1)):
        with pytest.raises(ValueError, match=re.escape(f"{state}: from a run with other settings or data")):
            train(config, Run(seed, state))


def test_a_state_of_other_sizes_data_or_tokenizer_is_refused(
    data: Trajectories, tokenizer: ActionTokenizer, tmp_path: Path
) -> None:
    of_tokenizer, of_policy = Run(1, tmp_path / "tokenizer"), Run(1, tmp_path / "policy")
    other_data = replace(data, actions=data.actions[::-1].copy())
    other_tokenizer, _ = train_tokenizer(data, TOKENIZER, FOUR, Run(3))
    train_tokenizer(data, TOKENIZER, FOUR, of_tokenizer)
    train_policy(data, tokenizer, 3, SIZE, FOUR, of_policy)
    for attempt in (
        lambda: train_tokenizer(data, replace(TOKENIZER, hidden=8), FOUR, of_tokenizer),
        lambda: train_tokenizer(other_data, TOKENIZER, FOUR, of_tokenizer),
        lambda: train_policy(data, tokenizer, 3, SIZE | {"layers": 2}, FOUR, of_policy),
        lambda: train_policy(data, tokenizer, 2, SIZE, FOUR, of_policy),
        lambda: train_policy(other_data, tokenizer, 3, SIZE, FOUR, of_policy),
        lambda: train_policy(data, other_tokenizer, 3, SIZE, FOUR, of_policy),
    ):
        with pytest.raises(ValueError, match="from a run with other settings or data"):
            attempt()


def test_a_damaged_state_is_refused(data: Trajectories, tmp_path: Path) -> None:
    state = tmp_path / "state.safetensors"
    train_tokenizer(data, TOKENIZER, FOUR, Run(1, state))
    whole = state.read_bytes()
    for damage in (
        lambda: state.write_bytes(whole[:100]),
        lambda: save_file({"a": np.zeros(1)}, state),
        lambda: save_file({"a": np.zeros(1)}, state, metadata={"adahi": "[" * 100_000}),
        lambda: save_file({"a": np.zeros(1)}, state, metadata={"adahi": "[]"}),
        lambda: save_file({"a": np.zeros(1)}, state, metadata={"adahi": "{}"}),
    ):
        damage()
        with pytest.raises(ValueError, match=re.escape(f"{state}: not a saved run")):
            train_tokenizer(data, TOKENIZER, FOUR, Run(1, state))


def test_focal_loss_against_hand_computation() -> None:
    p = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]])
    expected = -(0.8**2 * np.log(0.2) + 0.2**2 * np.log(0.8)) / 2
    assert focal_loss(p.log(), torch.tensor([2, 1]), 2.0).item() == pytest.approx(expected, rel=1e-5)


def test_policy_loss_against_hand_computation() -> None:
    p = torch.tensor([[[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]]])
    codes = torch.tensor([[0, 1, 1]])
    offsets = torch.zeros(1, 3, 2, 1, 2)
    offsets[0, 0, 0, 0] = torch.tensor([1.0, 0.0])
    offsets[0, 1, 1, 0] = torch.tensor([0.5, 0.25])
    offsets[0, 2, 0, 0] = 100.0  # not a chosen code: no part of the loss
    missing = torch.tensor([[[1.0, 1.0]]])
    codes_loss = -(5.0 * 0.5**2 * np.log(0.5) + 0.5 * (0.2**2 * np.log(0.8) + 0.9**2 * np.log(0.1)))
    offset_loss = (0.5 + 0.75) / 2
    got = policy_loss(p.log(), offsets, codes, codes, missing, CodeFitConfig(1, offset_weight=7.0)).item()
    assert got == pytest.approx(codes_loss + 7.0 * offset_loss, rel=1e-5)


def test_a_loss_that_is_not_finite_ends_the_run() -> None:
    module = nn.Linear(1, 1)
    with pytest.raises(RuntimeError, match="loss: nan at step 0"):
        fit(module, lambda batch: module(torch.full((1, 1), np.nan)).sum(), 4, FitConfig(3, 2), Run(0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "fit.steps: 0, must be at least 1"),
        ({"batch_size": 1}, "fit.batch_size: 1, must be at least 2"),
        ({"warmup": -1}, "fit.warmup: -1, must be at least 0"),
        ({"learning_rate": -1e-3}, "fit.learning_rate: -0.001, must be finite and not negative"),
        ({"learning_rate": np.nan}, "fit.learning_rate: nan, must be finite"),
        ({"average": 1.0}, "fit.average: 1.0, must be at least 0 and below 1"),
        ({"average": -0.1}, "fit.average: -0.1, must be at least 0 and below 1"),
        ({"average": np.nan}, "fit.average: nan, must be at least 0 and below 1"),
        ({"offset_weight": np.inf}, "fit.offset_weight: inf, must be finite"),
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CodeFitConfig(**({"steps": 10} | changes))


def test_offsets_at_sampled_codes_learn_the_way_from_there(
    demonstrations: Callable[[int], Trajectories],
) -> None:
    """Whatever is drawn, decoding plus offset comes near what was demonstrated; else it need not."""
    data = demonstrations(2)
    config = TokenizerConfig(2, 1, 2, codebook_size=8, latent_dim=8, hidden=16)
    tokenizer, _ = train_tokenizer(data, config, FitConfig(60, 64), Run(0))
    size = {"width": 16, "layers": 1, "heads": 2, "head_hidden": 32}
    error = {}
    for where in OFFSET_CODES:
        fit_config = CodeFitConfig(150, 128, learning_rate=3e-3, offset_codes=where, offset_weight=10.0)
        model, _ = train_policy(data, tokenizer, 1, size, fit_config, Run(0))
        with torch.no_grad():
            logits, offsets = model(
                torch.from_numpy(data.observations)[:, None], torch.from_numpy(step_goals(data))
            )
        codes = torch.distributions.Categorical(logits=torch.zeros_like(logits)).sample()
        rows, books = torch.arange(len(codes))[:, None], torch.arange(2)[None]
        decoded = torch.from_numpy(tokenizer.freeze().decode(codes.numpy()))
        executed = (decoded + offsets[rows, books, codes].sum(dim=1))[:, 0]
        error[where] = float((executed - torch.from_numpy(data.actions)).abs().mean())
    assert error["sampled"] < 0.5 * error["demonstrated"]

"""A policy that learns on: what it is taught gets likelier, and what it knew is kept."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training.fitting import Run
from adahi_lab.training.tokenizer import ActionTokenizer
from adahi_lab.training.vqbet_files import load_tokenizer
from adahi_lab.training.vqbet_finetuning import Actions, fine_tune, log_likelihood
from adahi_lab.training.vqbet_training import CodeFitConfig, Demonstrated
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint
from adahi_ros.policies.vqbet.vqbet_network import VQBeT
from adahi_ros.policies.vqbet.vqbet_torch import load_network

H, N = 3, 200
FIT = CodeFitConfig(60, 64, warmup=0, learning_rate=1e-2)


@pytest.fixture(scope="module")
def tokenizer(checkpoints: Path) -> ActionTokenizer:
    return load_tokenizer(checkpoints)


@pytest.fixture(scope="module")
def model(checkpoints: Path) -> VQBeT:
    return load_network(load_checkpoint(checkpoints / "draft"))


@pytest.fixture(scope="module")
def old(demonstrations: Callable[[int], Trajectories], tokenizer: ActionTokenizer) -> Demonstrated:
    return Demonstrated.from_data(demonstrations(2), tokenizer, H)


@pytest.fixture(scope="module")
def other(tokenizer: ActionTokenizer) -> Actions:
    """What demonstrations never show: one action, wherever the robot is."""
    draw = np.random.default_rng(3)
    windows = draw.normal(size=(N, H, 6)).astype(np.float32)
    goals = draw.normal(size=(N, 2)).astype(np.float32)
    return Actions.from_windows(windows, goals, np.tile(np.array([0.3, -0.3], np.float32), (N, 1)), tokenizer)


Tune = Callable[..., tuple[VQBeT, list[float]]]


@pytest.fixture(scope="module")
def tune(model: VQBeT, tokenizer: ActionTokenizer, old: Demonstrated, other: Actions) -> Tune:
    """From the share of what is old, and what is new, to the network that has learned on, and its losses."""

    def learn(rehearsal: float, new: Actions = other, run: Run | None = None) -> tuple[VQBeT, list[float]]:
        return fine_tune(model, tokenizer, old, new, FIT, rehearsal, run or Run(1))

    return learn


def same(one: VQBeT, other: VQBeT) -> bool:
    return all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())


def test_what_is_taught_gets_likelier(model: VQBeT, other: Actions, tune: Tune) -> None:
    assert log_likelihood(tune(0.5)[0], other) > log_likelihood(model, other) + 1.0


def test_the_network_that_it_begins_with_stays_as_it_is(model: VQBeT, tune: Tune) -> None:
    was = copy.deepcopy(model)
    tune(0.5)
    assert same(model, was)


def test_at_a_rehearsal_of_one_it_does_not_matter_what_is_new(other: Actions, tune: Tune) -> None:
    twisted = Actions(other.windows, other.goals, other.codes.flip(0) * 0, other.chunks)
    assert same(tune(1.0)[0], tune(1.0, twisted)[0])


def test_a_run_that_was_stopped_ends_as_one_that_was_not(tune: Tune, other: Actions, tmp_path: Path) -> None:
    def stop(step: int, loss: float) -> None:
        if step == 40:
            raise EOFError

    state = tmp_path / "draft.training.safetensors"
    with pytest.raises(EOFError):
        tune(0.5, other, Run(1, state, 20, on_step=stop))
    again, losses = tune(0.5, other, Run(1, state, 20))
    whole, expected = tune(0.5)
    assert losses == expected
    assert same(again, whole)
    with pytest.raises(ValueError, match="from a run with other settings or data"):
        tune(0.4, other, Run(1, state))


def test_a_code_of_several_actions_is_refused(make_checkpoints: Callable[..., Path]) -> None:
    tokenizer = load_tokenizer(make_checkpoints(chunk_length=8))
    windows, goals = np.zeros((1, H, 6), np.float32), np.zeros((1, 2), np.float32)
    with pytest.raises(ValueError, match=r"tokenizer.chunk_length: 8, must be 1"):
        Actions.from_windows(windows, goals, np.zeros((1, 2), np.float32), tokenizer)

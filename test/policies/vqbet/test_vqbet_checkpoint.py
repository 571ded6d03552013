from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training.vqbet_files import load_tokenizer, save_policy, save_tokenizer
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_checkpoint, load_decoder
from adahi_ros.policies.vqbet.vqbet_torch import load_network


@pytest.fixture
def directory(checkpoints: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(checkpoints, tmp_path / "checkpoints"))


@pytest.mark.parametrize(("goal_dim", "chunk_length", "codebooks"), [(2, 1, 2), (0, 2, 3)])
def test_a_tokenizer_comes_back_as_it_was_saved(
    make_checkpoints: Callable[..., Path],
    demonstrations: Callable[[int], Trajectories],
    tmp_path: Path,
    goal_dim: int,
    chunk_length: int,
    codebooks: int,
) -> None:
    saved = make_checkpoints(goal_dim, chunk_length, codebooks)
    first = load_tokenizer(saved)
    decoder = save_tokenizer(tmp_path / "new", first, {"seed": 3})
    assert (
        load_decoder(tmp_path / "new").fingerprint == decoder.fingerprint == load_decoder(saved).fingerprint
    )
    np.testing.assert_array_equal(load_decoder(tmp_path / "new").table, decoder.table)
    np.testing.assert_array_equal(load_decoder(tmp_path / "new").action_scale, decoder.action_scale)
    again = load_tokenizer(tmp_path / "new")
    actions = demonstrations(goal_dim).actions
    chunks = torch.from_numpy(actions[: 300 // chunk_length * chunk_length]).reshape(-1, chunk_length, 2)
    assert torch.equal(again.encode(chunks), first.encode(chunks))
    assert not again.training


def test_a_policy_comes_back_as_it_was_saved(directory: Path) -> None:
    first = load_checkpoint(directory / "draft")
    model = load_network(first)
    save_policy(directory, "copy", model, {"steps": 7})
    second = load_checkpoint(directory / "copy.json")
    assert second.training == {"steps": 7}
    assert (second.sizes, second.config) == (first.sizes, first.config)
    assert second.parameters == model.parameters_count
    assert second.digest() == first.digest()
    weights = load_network(second).state_dict()
    for name, value in model.state_dict().items():
        assert torch.equal(weights[name], value), name


def test_a_policy_of_another_tokenizer_is_refused(
    directory: Path, make_checkpoints: Callable[..., Path]
) -> None:
    other = make_checkpoints(seed=1)
    for suffix in ("json", "safetensors"):
        shutil.copy(other / f"draft.{suffix}", directory / f"draft.{suffix}")
    fingerprints = [load_decoder(place).fingerprint for place in (other, directory)]
    with pytest.raises(CheckpointError, match="{}, the one beside it is {}".format(*fingerprints)):
        load_checkpoint(directory / "draft")

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training.fitting import FitConfig, Run
from adahi_lab.training.tokenizer import ActionTokenizer, TokenizerConfig
from adahi_lab.training.vqbet_training import train_tokenizer


@pytest.fixture(scope="module")
def actions(demonstrations: Callable[[int], Trajectories]) -> torch.Tensor:
    return torch.from_numpy(demonstrations(2).actions[:, None])


@pytest.fixture(scope="module")
def tokenizer(demonstrations: Callable[[int], Trajectories]) -> ActionTokenizer:
    config = TokenizerConfig(2, codebooks=2, codebook_size=8, latent_dim=16, hidden=32)
    return train_tokenizer(demonstrations(2), config, FitConfig(150, 128, 5e-3), Run(0))[0]


def test_a_decoded_action_is_encoded_to_itself_or_a_neighbour(
    tokenizer: ActionTokenizer, actions: torch.Tensor
) -> None:
    decoder = tokenizer.freeze()
    decoded = decoder.decode(np.unique(tokenizer.encode(actions).numpy(), axis=0))
    again = decoder.decode(tokenizer.encode(torch.from_numpy(decoded)).numpy())
    missed = np.abs(again - decoded) / decoder.action_scale
    assert missed.mean() < 0.06
    assert np.abs(decoded / decoder.action_scale).mean() > 0.5


@pytest.mark.parametrize(("chunk_length", "codebooks"), [(1, 2), (3, 1), (2, 3)])
def test_the_lookup_is_what_the_network_decodes(
    demonstrations: Callable[[int], Trajectories], chunk_length: int, codebooks: int
) -> None:
    data = demonstrations(2)
    config = TokenizerConfig(2, chunk_length, codebooks, codebook_size=4, latent_dim=8, hidden=16)
    tokenizer, _ = train_tokenizer(data, config, FitConfig(5, 32), Run(1))
    decoder = tokenizer.freeze()
    assert decoder.table.shape == (4,) * codebooks + (chunk_length, 2)
    for codes in itertools.product(range(4), repeat=codebooks):
        with torch.no_grad():
            entries = zip(tokenizer.quantizer.codebooks, codes, strict=True)
            latent = torch.stack([book[code] for book, code in entries]).sum(dim=0)
            flat = tokenizer.decoder(tokenizer.quantizer.project_out(latent)).reshape(chunk_length, 2)
        chunk = flat.numpy() * data.actions.std(axis=0) + data.actions.mean(axis=0)
        np.testing.assert_allclose(decoder.decode(np.array([codes]))[0], chunk, rtol=1e-4, atol=1e-6)

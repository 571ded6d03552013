"""Fixtures of the papers' rooms: untrained token policies, and a few chunks of the shipped ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from test.papers.token_lines import FOLDER, SEED, TASK

from adahi_lab.papers.tokens.token_checkpoint import save_codec
from adahi_lab.papers.tokens.token_codes import BinCodec
from adahi_lab.papers.tokens.token_network import TokenNetwork
from adahi_lab.papers.tokens.token_pair import Chunks
from adahi_lab.papers.tokens.token_sizes import TokenConfig
from adahi_lab.papers.tokens.token_torch import save_tokens
from adahi_ros.core.signature import Observations
from adahi_ros.policies.networks.transformer import InputMoments

SEEN, G, A, H, T, K = 5, 3, 2, 2, 3, 16
CODEC = BinCodec(
    {"low": np.array([-1.0, -2.0]), "high": np.array([1.0, 4.0]), "action_scale": np.array([0.5, 1.0])}, K, T
)
TARGET = TokenConfig(SEEN, G, A, H, CODEC.codebooks, K, width=16, layers=2, heads=2)
DRAFT = replace(TARGET, goal_dim=0, width=8, layers=1)


def network(config: TokenConfig) -> TokenNetwork:
    """An untrained one, with distributions far from uniform."""
    torch.manual_seed(config.width)
    goal = torch.randn(config.goal_dim), torch.rand(config.goal_dim) + 0.5
    made = TokenNetwork(config, InputMoments(torch.randn(SEEN), torch.rand(SEEN) + 0.5, *goal))
    with torch.no_grad():
        made.code_out.weight *= 5.0
    return made.eval()


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the tokenizer, `draft` and `target`."""
    folder = tmp_path_factory.mktemp("tokens")
    save_codec(folder, CODEC)
    for name, config in (("draft", DRAFT), ("target", TARGET)):
        save_tokens(folder, name, network(config), {"seed": 0})
    return folder


def seen(batch: int, config: TokenConfig = TARGET, seed: int = 0) -> Observations:
    """Any observations of some robots."""
    rng = np.random.default_rng(seed)
    features = {"observation": rng.normal(size=(batch, H, SEEN)).astype(np.float32)}
    goals = rng.normal(size=(batch, config.goal_dim)).astype(np.float32)
    return Observations(features, {"goal": goals} if config.goal_dim else {})


@pytest.fixture
def chunks(tmp_path: Path) -> Chunks:
    """The first three chunks of the shipped pair."""
    made = Chunks(TASK, FOLDER, tmp_path, 2, SEED)
    del made.seen[3:]
    return made

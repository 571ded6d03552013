# SPDX-License-Identifier: Apache-2.0
"""Training of token policies: the next token of demonstrated chunks, by cross-entropy."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from adahi_ros.core.trajectories import Trajectories
from adahi_ros.lab.training.fitting import FitConfig, Run, digest_of, fit, sizes_of
from adahi_ros.policies.networks.step_dataset import Moments, action_chunks, step_goals, window_indices
from adahi_ros.policies.networks.transformer import InputMoments
from adahi_ros.policies.tokens.frequency_codes import FrequencyCodec, learned_merges
from adahi_ros.policies.tokens.token_checkpoint import CODECS, CodecSizes
from adahi_ros.policies.tokens.token_codes import TokenCodec
from adahi_ros.policies.tokens.token_network import TokenNetwork
from adahi_ros.policies.tokens.token_sizes import TokenConfig

PERCENTILES = (1.0, 99.0)  # of the demonstrated actions, between which bins are
PAIRED = 8000  # chunks from which byte pairs are learned


def codec_of(data: Trajectories, sizes: CodecSizes) -> TokenCodec:
    """Return the action tokenizer for demonstrations."""
    low, high = np.percentile(data.actions, PERCENTILES, axis=0).astype(np.float32)
    arrays = {"low": low, "high": high, "action_scale": Moments.of(data.actions).scale}
    if sizes.kind != FrequencyCodec.kind:
        return CODECS[sizes.kind](arrays, sizes)
    arrays["merges"] = np.zeros((0, 2), dtype=np.int64)
    plain = FrequencyCodec(arrays, sizes.codebooks, sizes.chunk_length)
    if sizes.codebook_size < plain.codebook_size:
        raise ValueError(f"codebook_size: {sizes.codebook_size}, must be at least {plain.codebook_size}")
    chunks = action_chunks(data, sizes.chunk_length)
    chosen = np.random.default_rng(0).choice(len(chunks), min(len(chunks), PAIRED), replace=False)
    symbols = plain.symbols(chunks[chosen])
    merges = learned_merges(symbols, plain.codebook_size, sizes.codebook_size - plain.codebook_size)
    return FrequencyCodec({**arrays, "merges": merges}, sizes.codebooks, sizes.chunk_length)


def train_tokens(
    data: Trajectories,
    codec: TokenCodec,
    window_length: int,
    size: dict[str, Any],
    fit_config: FitConfig,
    run: Run,
) -> tuple[TokenNetwork, list[float]]:
    """Train a token policy; return it and its losses.

    Matrix products are in bfloat16, three times as quick on a CPU that has it; weights stay in float32.

    Args:
        data: demonstrations.
        codec: of the chunks. A chunk past an episode's end repeats its last action.
        window_length: H.
        size: other arguments of `TokenConfig`.
        fit_config: how long and how fast.
        run: seed, saved state and progress.
    """
    config = TokenConfig(
        **sizes_of(data, window_length),
        codebooks=codec.codebooks,
        codebook_size=codec.codebook_size,
        **size,
    )
    moments = InputMoments.of(Moments.of(data.inputs), Moments.of(data.goals))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        network = TokenNetwork(config, moments)
    observations, goals = torch.from_numpy(data.inputs), torch.from_numpy(step_goals(data))
    rows = torch.from_numpy(window_indices(data, window_length))
    codes = torch.from_numpy(codec.encode(action_chunks(data, codec.chunk_length)))

    def loss_of(batch: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            logits = network.logits(observations[rows[batch]], goals[batch], codes[batch])
        return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), codes[batch].flatten())

    recipe = {"policy": asdict(config), "data": digest_of(observations, goals, codes)}
    return network, fit(network, loss_of, len(rows), fit_config, run, recipe)

# SPDX-License-Identifier: Apache-2.0
"""Training of token policies: the next token of demonstrated chunks, by cross-entropy."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.papers.tokens.frequency_codes import FrequencyCodec, learned_merges
from adahi_lab.papers.tokens.token_checkpoint import CODECS, CodecSizes
from adahi_lab.papers.tokens.token_codes import TokenCodec
from adahi_lab.papers.tokens.token_network import TokenNetwork
from adahi_lab.papers.tokens.token_sizes import TokenConfig
from adahi_lab.training.fitting import FitConfig, Run, digest_of, fit, input_moments, seeded, sizes_of
from adahi_lab.training.step_dataset import Moments, action_chunks, step_goals, window_indices

PERCENTILES = (1.0, 99.0)  # of the demonstrated actions, between which bins are
PAIRED = 8000  # chunks from which byte pairs are learned


def codec_of(data: Trajectories, sizes: CodecSizes) -> TokenCodec:
    """Return the action tokenizer for demonstrations."""
    low, high = np.percentile(data.actions, PERCENTILES, axis=0).astype(np.float32)
    arrays = {"low": low, "high": high, "action_scale": Moments.measure(data.actions).scale}
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

    Where the demonstrations have labels, the hidden state before the first token also predicts these, by a
    layer that is discarded. A network that reads patches learns what is where in fewer steps.

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
    seen = data.observations if config.patch else data.inputs
    moments = input_moments(Moments.measure(seen), Moments.measure(data.goals))
    module = seeded(run.seed, lambda: _Labelling(TokenNetwork(config, moments), data.labels.shape[1]))
    observations, goals = torch.from_numpy(seen), torch.from_numpy(step_goals(data))
    pixels = torch.from_numpy(data.image_features) if config.patch else None
    rows = torch.from_numpy(window_indices(data, window_length))
    codes = torch.from_numpy(codec.encode(action_chunks(data, codec.chunk_length)))
    labelled = Moments.measure(data.labels)
    labels = torch.from_numpy((data.labels - labelled.mean) / labelled.scale)

    def loss_of(batch: Tensor) -> Tensor:
        shown = None if pixels is None else pixels[batch].float()
        with torch.autocast("cpu", torch.bfloat16):
            given = observations[rows[batch]], goals[batch], codes[batch], shown
            logits, hidden = module.network.logits(*given)
            named = module.names(hidden[:, 0])
        loss = F.cross_entropy(logits.float().flatten(0, 1), codes[batch].flatten())
        return loss + F.mse_loss(named.float(), labels[batch]) if labels.shape[1] else loss

    recipe = {"policy": asdict(config), "data": digest_of(observations, goals, codes)}

    def on_save(done: int, trained: nn.Module) -> None:
        run.on_save(done, trained.get_submodule("network"))

    saving = replace(run, on_save=on_save)
    return module.network, fit(module, loss_of, len(rows), fit_config, saving, recipe)


class _Labelling(nn.Module):
    """A network, and a layer that predicts labels from a hidden state."""

    def __init__(self, network: TokenNetwork, labels: int) -> None:
        super().__init__()
        self.network = network
        self.names = nn.Linear(network.config.width, labels) if labels else nn.Identity()

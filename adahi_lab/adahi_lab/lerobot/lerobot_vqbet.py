# SPDX-License-Identifier: Apache-2.0
"""LeRobot's VQ-BeT as a `Policy`: its transformer and heads, and its residual VQ as our tokenizer.

    per step   image features   state   query       three tokens
                     └────────────┴───────┴── causal ──┘
                                              └─▶ code head    2 x K logits, one softmax per codebook
                                              └─▶ offset head  2 x K x W x A, gathered at the codes

An observation is [state | features], with the features of `LeRobotEncoder`. LeRobot's queries for
later actions are left out: they follow the others, and causal attention never reads them.

Where LeRobot draws the second code after the first (`sequentially_select`), the pair is one code of a
codebook of K x K: the same distribution, exactly.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from adahi_lab.lerobot.lerobot_checkpoint import (
    CODEBOOKS,
    MODEL,
    VQ,
    WEIGHTS,
    LeRobotCheckpoint,
    LeRobotConfig,
    read_checkpoint,
)
from adahi_lab.training.tokenizer import ActionTokenizer, TokenizerConfig
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.signature import Ranges
from adahi_ros.policies.networks.computing import OnTorch
from adahi_ros.policies.networks.transformer import Block
from adahi_ros.policies.vqbet.code_policy import ActionDecoder, CodePolicy
from adahi_ros.policies.vqbet.vqbet_checkpoint import code_signature, load_decoder

SAME_ACTION = 1e-4  # in units of the action scale, between the decode tables of two machines


# LeRobot's names of the parts of a `Block`.
THEIRS = {
    "attention_norm": "ln_1",
    "query_key_value": "attn.c_attn",
    "attention_out": "attn.c_proj",
    "mlp_norm": "ln_2",
}


class _Transformer(nn.Module):
    def __init__(self, config: LeRobotConfig) -> None:
        super().__init__()
        width = config.gpt_hidden_dim
        self.wte = nn.Linear(config.gpt_input_dim, width)
        self.wpe = nn.Embedding(config.gpt_block_size, width)
        self.h = nn.ModuleList(Block(width, config.gpt_n_head) for _ in range(config.gpt_n_layer))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return the hidden state at the last token."""
        hidden = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.h:
            hidden = block(hidden, mask)
        last: Tensor = self.ln_f(hidden[:, -1])
        return last


class LeRobotVQBeT(nn.Module):
    """The network, with LeRobot's names for the weights; takes and gives units of the robot.

    Logits are divided by LeRobot's `bet_softmax_temperature`: LeRobot samples from their softmax.

    Raises:
        CheckpointError: the weights do not fit the configuration.
    """

    action_token: Tensor
    state_shift: Tensor
    state_scale: Tensor
    offset_scale: Tensor
    mask: Tensor

    def __init__(self, checkpoint: LeRobotCheckpoint) -> None:
        super().__init__()
        config = checkpoint.config
        self.codes, self.chunk_length = config.vqvae_n_embed, config.action_chunk_size
        self.temperature, self.sequential = config.bet_softmax_temperature, config.sequentially_select
        self.state_dim, action_dim = config.state_dim, config.action_dim
        token, out = config.gpt_input_dim, config.gpt_output_dim
        image_features = 2 * config.spatial_softmax_num_keypoints
        self.action_token = nn.Parameter(torch.zeros(1, 1, token))
        self.state_projector = nn.Sequential(nn.Linear(self.state_dim, token))
        self.rgb_feature_projector = nn.Sequential(nn.Linear(image_features, token))
        lm_head = nn.Linear(config.gpt_hidden_dim, out, bias=False)
        self.policy = nn.ModuleDict({"transformer": _Transformer(config), "lm_head": lm_head})
        offsets = CODEBOOKS * self.codes * self.chunk_length * action_dim
        heads = {"map_to_cbet_preds_offset": nn.Sequential(nn.Linear(out, offsets))}
        if self.sequential:
            heads["map_to_cbet_preds_primary_bin"] = nn.Sequential(nn.Linear(out, self.codes))
            heads["map_to_cbet_preds_secondary_bin"] = nn.Sequential(nn.Linear(out + self.codes, self.codes))
        else:
            heads["map_to_cbet_preds_bin"] = nn.Sequential(nn.Linear(out, CODEBOOKS * self.codes))
        self.action_head = nn.ModuleDict(heads)
        try:
            self.load_state_dict({name: checkpoint.tensor(_theirs(name)) for name in self.state_dict()})
        except RuntimeError as error:
            fault = " ".join(str(error).split())
            raise CheckpointError(f"{checkpoint.folder / WEIGHTS}: {fault}") from None
        scaling = checkpoint.state_scaling
        self.state_bias = scaling.bias
        self.register_buffer("state_shift", scaling.shift)
        self.register_buffer("state_scale", scaling.scale)
        scaling = checkpoint.action_scaling
        self.register_buffer("offset_scale", torch.where(scaling.still, 0.0, scaling.scale))
        length = 3 * config.n_obs_steps
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1))
        self.eval().requires_grad_(False)

    def forward(self, windows: Tensor, goals: Tensor) -> tuple[Tensor, Tensor]:
        """Predict from windows (B, H, O) and goals (B, 0): logits (B, N, K), offsets (B, N, K, W, A)."""
        features = self._features(windows)
        chunk = (self.chunk_length, len(self.offset_scale))
        offsets = self.action_head["map_to_cbet_preds_offset"](features)
        offsets = offsets.unflatten(-1, (CODEBOOKS, self.codes, *chunk)) * self.offset_scale
        if self.sequential:
            of_pairs = (offsets[:, 0, :, None] + offsets[:, 1, None]).flatten(1, 2)
            return self._joint_logits(features), of_pairs[:, None]
        logits = self.action_head["map_to_cbet_preds_bin"](features).unflatten(-1, (CODEBOOKS, self.codes))
        return logits / self.temperature, offsets

    def _features(self, windows: Tensor) -> Tensor:
        """Return the transformer's output (B, D) at the query of the newest step."""
        state, image = windows.split((self.state_dim, windows.shape[-1] - self.state_dim), dim=-1)
        state = (state - self.state_shift) / self.state_scale + self.state_bias
        query = self.action_token.expand(*windows.shape[:2], -1)
        tokens = [self.rgb_feature_projector(image), self.state_projector(state), query]
        newest = self.policy["transformer"](torch.stack(tokens, dim=2).flatten(1, 2), self.mask)
        features: Tensor = self.policy["lm_head"](newest)
        return features

    def _joint_logits(self, features: Tensor) -> Tensor:
        """Return the logarithm of the probability of each pair of codes: (B, 1, K * K)."""
        primary = self.action_head["map_to_cbet_preds_primary_bin"](features)
        first = torch.eye(self.codes, device=features.device).expand(len(features), -1, -1)
        after = torch.cat([features[:, None].expand(-1, self.codes, -1), first], dim=-1)
        secondary = self.action_head["map_to_cbet_preds_secondary_bin"](after)
        logarithms = (primary / self.temperature).log_softmax(-1)[:, :, None]
        return (logarithms + (secondary / self.temperature).log_softmax(-1)).flatten(1)[:, None]


def _theirs(name: str) -> str:
    """Return LeRobot's name of a weight."""
    for ours, theirs in THEIRS.items():
        name = name.replace(f".{ours}.", f".{theirs}.")
    return name


def action_tokenizer(checkpoint: LeRobotCheckpoint) -> ActionTokenizer:
    """Convert LeRobot's residual VQ to our tokenizer: the same codes mean the same actions.

    LeRobot's scaling is folded into the outer layers, so that `action_mean` is the low end where LeRobot
    scales by ranges. Entries that were constant in its data keep their value, at a scale of 1, so that
    rounding does not look like a deviation.

    Raises:
        CheckpointError: the weights do not fit the configuration.
    """
    config, scaling = checkpoint.config, checkpoint.action_scaling
    codes, chunk_length = config.vqvae_n_embed, config.action_chunk_size
    books = [checkpoint.tensor(f"{VQ}.vq_layer.layers.{book}._codebook.embed") for book in range(CODEBOOKS)]
    if config.sequentially_select:
        books = [(books[0][:, :, None] + books[1][:, None]).flatten(1, 2)]
        codes **= CODEBOOKS
    sizes = (len(scaling.still), chunk_length, len(books), codes)
    try:
        size = TokenizerConfig(*sizes, config.vqvae_embedding_dim, config.vqvae_enc_hidden_dim)
        tokenizer = ActionTokenizer(size, scaling.shift, torch.where(scaling.still, 1.0, scaling.scale))
        tensors = tokenizer.state_dict()
        layers = [name for name in tensors if name.startswith(("encoder.", "decoder."))]
        tensors |= {name: checkpoint.tensor(f"{VQ}.{name}") for name in layers}
        _fold(tensors, scaling.bias, scaling.still.repeat(chunk_length))
        for number, book in enumerate(books):
            codebook = f"quantizer.layers.{number}._codebook"
            tensors |= {f"{codebook}.embed": book, f"{codebook}.embed_avg": book}
            tensors[f"{codebook}.initted"] = torch.tensor(True)
        tokenizer.load_state_dict(tensors)
    except CheckpointError:
        raise
    except (RuntimeError, ValueError) as error:
        fault = " ".join(str(error).split())
        raise CheckpointError(f"{checkpoint.folder / WEIGHTS}: {MODEL}{VQ}: {fault}") from None
    return tokenizer.eval().requires_grad_(False)


def _fold(tensors: dict[str, Tensor], bias: float, still: Tensor) -> None:
    """Shift the input and output of the outer layers by `-bias` relative to LeRobot; 0 for still entries."""
    into, out_of = tensors["encoder.0.weight"], tensors["decoder.4.weight"]
    tensors["encoder.0.bias"] = tensors["encoder.0.bias"] + bias * into.sum(1)
    tensors["encoder.0.weight"] = torch.where(still, 0.0, into)
    tensors["decoder.4.bias"] = torch.where(still, 0.0, tensors["decoder.4.bias"] - bias)
    tensors["decoder.4.weight"] = torch.where(still[:, None], 0.0, out_of)


def lerobot_tokenizer(folder: Path) -> ActionTokenizer:
    """Read the tokenizer of a LeRobot policy, for `save_tokenizer` and to train a draft on.

    Raises:
        CheckpointError: as `read_checkpoint` and `action_tokenizer`.
    """
    return action_tokenizer(read_checkpoint(folder))


def _decoder(checkpoint: LeRobotCheckpoint) -> ActionDecoder:
    """Return the decoder of the tokenizer beside the folder, or build one where there is none.

    Another machine may round the table differently, and a draft must have the same bits.
    """
    made = action_tokenizer(checkpoint).freeze()
    beside = checkpoint.folder.parent
    if not (beside / "tokenizer.json").is_file():
        return made
    saved = load_decoder(beside)
    if saved.table.shape != made.table.shape or not np.all(
        np.abs(saved.table - made.table) <= SAME_ACTION * made.action_scale
    ):
        raise CheckpointError(
            f"{beside / 'tokenizer.safetensors'}: fingerprint {saved.fingerprint}: not the tokenizer of "
            f"{checkpoint.folder}"
        )
    return saved


class LeRobotPolicy(CodePolicy):
    """A LeRobot VQ-BeT as a `Policy` on torch, without LeRobot.

    Args:
        folder: written by LeRobot's `save_pretrained`, or by training as `pretrained_model`. Our tokenizer
            beside it, made by `lerobot_tokenizer` and `save_tokenizer`, takes precedence.
        compute: arguments of `OnTorch`.

    Raises:
        CheckpointError: the folder cannot be used; the message names file, field and what was expected.
    """

    def __init__(self, folder: Path, **compute: Any) -> None:
        checkpoint = read_checkpoint(folder)
        network = LeRobotVQBeT(checkpoint)
        decoder = _decoder(checkpoint)
        config = checkpoint.config
        signature = code_signature(
            decoder,
            config.n_obs_steps,
            network.state_dim + 2 * config.spatial_softmax_num_keypoints,
            parameters=sum(weight.numel() for weight in network.parameters()),
        )
        run = OnTorch(network, **compute)
        super().__init__(signature, decoder, checkpoint.digest, run, str(run.device))
        of_state = {
            name: (*values, *[math.nan] * (signature.observation_dim - len(values))) if values else ()
            for name, values in vars(checkpoint.state_ranges).items()
        }
        self.ranges = Ranges(**of_state), checkpoint.action_ranges


def imported(
    directory: Path, folder: str, device: str = "cpu", dtype: str = "float32", compile: bool = False
) -> LeRobotPolicy:
    """Return the policy in a folder beside a target file, as `adahi import vqbet` writes both."""
    return LeRobotPolicy(directory / folder, device=device, dtype=dtype, compile=compile)

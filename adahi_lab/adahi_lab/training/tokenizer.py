# SPDX-License-Identifier: Apache-2.0
"""The action tokenizer: a residual VQ autoencoder over action chunks.

Paper: section II-A, action discretization. VQ-BeT (Lee et al., 2024, section 4.1) gives the sizes:
two codebooks of 16, encoder and decoder MLPs of two hidden layers of 128.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from vector_quantize_pytorch import ResidualVQ

from adahi_ros.core.tensor_files import Shapes
from adahi_ros.policies.networks.network_checkpoint import NetworkSizes, Size
from adahi_ros.policies.vqbet.code_policy import MAX_COMBINATIONS, ActionDecoder

COMMITMENT_WEIGHT = 5.0  # the scalar of the paper's equation (1), as in VQ-BeT's official code
CODEBOOK_DECAY = 0.8


@dataclass(frozen=True)
class TokenizerConfig(NetworkSizes):
    """Sizes of an action tokenizer."""

    layered: ClassVar[dict[str, tuple[str, str]]] = {"codebooks": ("quantizer.layers.", "._codebook.embed")}

    action_dim: Size
    chunk_length: Size = 1
    codebooks: Size = 2
    codebook_size: Size = 16
    latent_dim: Size = 64
    hidden: Size = 128

    def __post_init__(self) -> None:
        most = math.log2(MAX_COMBINATIONS)
        # Compared, not multiplied: an integer of a file may be too large for a float.
        if self.codebook_size > 1 and self.codebooks > most / math.log2(self.codebook_size):
            found = f"{self.codebook_size} ** {self.codebooks}"
            raise ValueError(f"codebook_size ** codebooks: {found}, must be at most {MAX_COMBINATIONS}")

    def shapes(self) -> Shapes:
        """See `NetworkSizes`."""
        flat, book = self.chunk_length * self.action_dim, (1, self.codebook_size, self.latent_dim)
        before, after = self.layered["codebooks"]
        return {
            "action_scale": (self.action_dim,),
            "encoder.0.weight": (self.hidden, flat),
            "encoder.2.weight": (self.hidden, self.hidden),
            "encoder.4.weight": (self.latent_dim, self.hidden),
            **{f"{before}{number}{after}": book for number in range(self.codebooks)},
        }


def _mlp(sizes: list[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(sizes):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class ActionTokenizer(nn.Module):
    """Encodes action chunks (B, W, A) in action units to codes (B, N), and back.

    Args:
        config: its sizes.
        action_mean: (A,) mean of the demonstrated actions.
        action_scale: (A,) their standard deviation, positive.
    """

    action_mean: Tensor
    action_scale: Tensor

    def __init__(self, config: TokenizerConfig, action_mean: Tensor, action_scale: Tensor) -> None:
        super().__init__()
        self.config = config
        flat = config.chunk_length * config.action_dim
        self.encoder = _mlp([flat, config.hidden, config.hidden, config.latent_dim])
        self.decoder = _mlp([config.latent_dim, config.hidden, config.hidden, flat])
        self.quantizer = ResidualVQ(
            dim=config.latent_dim,
            num_quantizers=config.codebooks,
            codebook_size=config.codebook_size,
            decay=CODEBOOK_DECAY,
            kmeans_init=True,
            threshold_ema_dead_code=2,
            rotation_trick=False,
        )
        self.register_buffer("action_mean", action_mean.float())
        self.register_buffer("action_scale", action_scale.float())

    def normalize(self, chunks: Tensor) -> Tensor:
        """Scale chunks (B, W, A) to zero mean and unit deviation, flattened to (B, W * A)."""
        return ((chunks - self.action_mean) / self.action_scale).flatten(1)

    def loss(self, chunks: Tensor) -> Tensor:
        """Reconstruction and commitment loss of chunks (B, W, A); a moving average updates the codes."""
        normalized = self.normalize(chunks)
        quantized, _, commitment = self.quantizer(self.encoder(normalized))
        return F.l1_loss(self.decoder(quantized), normalized) + COMMITMENT_WEIGHT * commitment.sum()

    @torch.no_grad()
    def encode(self, chunks: Tensor) -> Tensor:
        """Return the codes (B, N) int64 of chunks (B, W, A). Wants `eval()` mode."""
        _, codes, _ = self.quantizer(self.encoder(self.normalize(chunks)))
        return codes

    @torch.no_grad()
    def freeze(self) -> ActionDecoder:
        """Decode every combination of codes once, for use without torch."""
        self.eval()
        config = self.config
        grid = torch.cartesian_prod(*[torch.arange(config.codebook_size)] * config.codebooks)
        codes = grid.reshape(-1, config.codebooks)
        latent = self.quantizer.get_output_from_indices(codes)
        chunks = self.decoder(latent).reshape(-1, config.chunk_length, config.action_dim)
        chunks = chunks * self.action_scale + self.action_mean
        shape = (config.codebook_size,) * config.codebooks + chunks.shape[1:]
        return ActionDecoder(chunks.reshape(shape).numpy(), self.action_scale.numpy())

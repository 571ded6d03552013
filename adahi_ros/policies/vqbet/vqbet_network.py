# SPDX-License-Identifier: Apache-2.0
"""VQ-BeT: a causal transformer that predicts codes and offsets from observations.

    goal      o_1      o_2     ...    o_H        one token each (the goal's is left out where G = 0)
      └────────┴────────┴──── causal ───┘
                                        └─▶ code head    N x K logits, one softmax per codebook
                                        └─▶ offset head  N x K x W x A, gathered at the codes

Paper: section II-A. Lee et al., "Behavior Generation with Latent Actions" (2024), section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from adahi_ros.core.schema import Schema
from adahi_ros.policies.networks.transformer import InputMoments, ObservationTransformer


@dataclass(frozen=True)
class VQBeTConfig(Schema):
    """Sizes of a VQ-BeT. Draft and target differ in `width`, `layers`, `heads` and `head_hidden`.

    Attributes:
        image_dim: see `observed_features`.

    Raises:
        ValueError: a size is out of range; names field, value and range.
    """

    observation_dim: int
    goal_dim: int
    action_dim: int
    window_length: int
    chunk_length: int
    codebooks: int
    codebook_size: int
    width: int = 120
    layers: int = 6
    heads: int = 6
    head_hidden: int = 256
    image_dim: int = 0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            smallest = 0 if name in ("goal_dim", "image_dim") else 1
            if value < smallest:
                raise ValueError(f"policy.{name}: {value}, must be at least {smallest}")
        if self.width % self.heads:
            raise ValueError(f"policy.width: {self.width}, must be a multiple of heads = {self.heads}")


class VQBeT(ObservationTransformer):
    """The network; takes observations and gives offsets in the task's units.

    Args:
        config: its sizes.
        moments: of what it reads.
        action_scale: (A,) the tokenizer's; the offset head works in units of it.
    """

    action_scale: Tensor

    def __init__(self, config: VQBeTConfig, moments: InputMoments, action_scale: Tensor) -> None:
        super().__init__(
            config.observation_dim,
            config.goal_dim,
            config.window_length,
            config.width,
            config.layers,
            config.heads,
            moments,
        )
        self.config = config
        width, hidden = config.width, config.head_hidden
        codes = config.codebooks * config.codebook_size
        self.code_head = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, codes))
        offsets = codes * config.chunk_length * config.action_dim
        self.offset_head = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, offsets))
        self.register_buffer("action_scale", action_scale.float())

    def heads(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits (..., N, K) and offsets (..., N, K, W, A) in action units."""
        config = self.config
        codes = (config.codebooks, config.codebook_size)
        logits = self.code_head(features).unflatten(-1, codes)
        chunk = (config.chunk_length, config.action_dim)
        offsets = self.offset_head(features).unflatten(-1, codes + chunk) * self.action_scale
        return logits, offsets

    def forward(self, windows: Tensor, goals: Tensor) -> tuple[Tensor, Tensor]:
        """Predict from windows (B, H, O) and goals (B, G): logits (B, N, K), offsets (B, N, K, W, A)."""
        return self.heads(self.features(windows, goals)[:, -1])

# SPDX-License-Identifier: Apache-2.0
"""VQ-BeT: a causal transformer that predicts codes and offsets from observations.

    goal      o_1      o_2     ...    o_H        one token each (the goal's is left out where G = 0)
      └────────┴────────┴──── causal ───┘
                                        └─▶ code head    N x K logits, one softmax per codebook
                                        └─▶ offset head  N x K x W x A, gathered at the codes

The offsets may come from a network of their own, on the window and the goal, see `VQBeTConfig.offset_hidden`.

Paper: section II-A. Lee et al., "Behavior Generation with Latent Actions" (2024), section 4.2.
"""

from __future__ import annotations

from torch import Tensor, nn

from adahi_ros.policies.networks.transformer import InputMoments, ObservationTransformer
from adahi_ros.policies.vqbet.vqbet_sizes import VQBeTConfig


class VQBeT(ObservationTransformer):
    """The network; takes observations and gives offsets in the task's units.

    Args:
        config: its sizes.
        moments: of what it reads.
        action_scale: (A,) the tokenizer's; the offset head works in units of it.
    """

    action_scale: Tensor

    def __init__(self, config: VQBeTConfig, moments: InputMoments, action_scale: Tensor) -> None:
        super().__init__(config, moments)
        self.config = config
        width, hidden = config.width, config.head_hidden
        codes = config.codebooks * config.codebook_size
        self.code_head = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, codes))
        offsets = codes * config.chunk_length * config.action_dim
        own = config.offset_hidden
        read, hidden = (config.read, own) if own else (width, hidden)
        between = [nn.Linear(own, own), nn.GELU()] if own else []
        self.offset_head = nn.Sequential(
            nn.Linear(read, hidden), nn.GELU(), *between, nn.Linear(hidden, offsets)
        )
        self.register_buffer("action_scale", action_scale.float())

    def heads(self, features: Tensor, read: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return logits (..., N, K) and offsets (..., N, K, W, A) in action units.

        Args:
            features: (..., width).
            read: (..., `VQBeTConfig.read`), what an offset network of its own reads; None without one.

        Raises:
            ValueError: there is an offset network of its own, and nothing for it to read.
        """
        config = self.config
        if config.offset_hidden and read is None:
            raise ValueError(f"offset_hidden: {config.offset_hidden}, must be 0 to train on whole windows")
        codes = (config.codebooks, config.codebook_size)
        logits = self.code_head(features).unflatten(-1, codes)
        chunk = (config.chunk_length, config.action_dim)
        offsets = self.offset_head(features if read is None else read).unflatten(-1, codes + chunk)
        return logits, offsets * self.action_scale

    def forward(self, windows: Tensor, goals: Tensor) -> tuple[Tensor, Tensor]:
        """Predict from windows (B, H, O) and goals (B, G): logits (B, N, K), offsets (B, N, K, W, A)."""
        features = self.features(windows, goals)[:, -1]
        return self.heads(features, self.flattened(windows, goals) if self.config.offset_hidden else None)

"""VQ-BeT: a causal transformer that predicts codes and offsets from observations.

    goal      o_1      o_2     ...    o_H        one token each (the goal's is left out where G = 0)
      └────────┴────────┴──── causal ───┘
                                        └─▶ code head    N x K logits, one softmax per codebook
                                        └─▶ offset head  N x K x W x A, gathered at the codes

Paper: section II-A. Lee et al., "Behavior Generation with Latent Actions" (2024), section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class VQBeTConfig:
    """Sizes of a VQ-BeT. Draft and target differ in `width`, `layers`, `heads` and `head_hidden`.

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

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            smallest = 0 if name == "goal_dim" else 1
            if value < smallest:
                raise ValueError(f"policy.{name}: {value}, must be at least {smallest}")
        if self.width % self.heads:
            raise ValueError(f"policy.width: {self.width}, must be a multiple of heads = {self.heads}")


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        projected = self.query_key_value(self.attention_norm(tokens))
        parts = projected.unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query, key, value = parts[0], parts[1], parts[2]
        # Spelled out: the exporter turns the fused form into twice the nodes, and nodes are what a
        # small network's step costs in ONNX Runtime.
        weights = (query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5 + mask).softmax(-1)
        tokens = tokens + self.attention_out((weights @ value).transpose(1, 2).flatten(2))
        return tokens + self.mlp(self.mlp_norm(tokens))


class VQBeT(nn.Module):
    """The network; takes observations and gives offsets in the task's units.

    Args:
        config: its sizes.
        observation_mean, observation_scale: (O,) of the demonstrations; scale positive.
        goal_mean, goal_scale: (G,) likewise.
        action_scale: (A,) the tokenizer's; the offset head works in units of it.
    """

    observation_mean: Tensor
    observation_scale: Tensor
    goal_mean: Tensor
    goal_scale: Tensor
    action_scale: Tensor

    mask: Tensor

    def __init__(
        self,
        config: VQBeTConfig,
        observation_mean: Tensor,
        observation_scale: Tensor,
        goal_mean: Tensor,
        goal_scale: Tensor,
        action_scale: Tensor,
    ) -> None:
        super().__init__()
        self.config = config
        width = config.width
        goal_tokens = 1 if config.goal_dim else 0
        self.observation_in = nn.Linear(config.observation_dim, width)
        self.goal_in = nn.Linear(config.goal_dim, width) if config.goal_dim else None
        length = goal_tokens + config.window_length
        self.position = nn.Parameter(0.02 * torch.randn(length, width))
        causal = torch.full((length, length), float("-inf")).triu(1)
        self.register_buffer("mask", causal, persistent=False)
        self.blocks = nn.ModuleList(_Block(width, config.heads) for _ in range(config.layers))
        self.final_norm = nn.LayerNorm(width)
        codes = config.codebooks * config.codebook_size
        hidden = config.head_hidden
        self.code_head = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, codes))
        offsets = codes * config.chunk_length * config.action_dim
        self.offset_head = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, offsets))
        for name, value in (
            ("observation_mean", observation_mean),
            ("observation_scale", observation_scale),
            ("goal_mean", goal_mean),
            ("goal_scale", goal_scale),
            ("action_scale", action_scale),
        ):
            self.register_buffer(name, value.float())

    def features(self, windows: Tensor, goals: Tensor) -> Tensor:
        """Return the hidden state (B, H, width) at each observation."""
        tokens = self.observation_in((windows - self.observation_mean) / self.observation_scale)
        if self.goal_in is not None:
            goal = self.goal_in((goals - self.goal_mean) / self.goal_scale)
            tokens = torch.cat([goal[:, None], tokens], dim=1)
        tokens = tokens + self.position
        for block in self.blocks:
            tokens = block(tokens, self.mask)
        return self.final_norm(tokens[:, -self.config.window_length :])

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

    @property
    def parameters_count(self) -> int:
        """Number of trainable weights."""
        return sum(weight.numel() for weight in self.parameters())

# SPDX-License-Identifier: Apache-2.0
"""The causal transformer of VQ-BeT and flow policies, over a goal and a window of observations.

goal      o_1      o_2     ...    o_H        one token each (the goal's is left out where G = 0)
  └────────┴────────┴──── causal ───┘
                                    └─▶ a feature vector for each observation
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import torch
from torch import Tensor, nn

from adahi_ros.policies.networks.network_checkpoint import TransformerSizes


@dataclass(frozen=True)
class InputMoments:
    """Mean and standard deviation of each input of a network; scales are positive.

    Attributes:
        observation_mean, observation_scale: (O,) of the demonstrations.
        goal_mean, goal_scale: (G,) likewise.
    """

    observation_mean: Tensor
    observation_scale: Tensor
    goal_mean: Tensor
    goal_scale: Tensor

    @classmethod
    def among(cls, weights: Mapping[str, Tensor]) -> InputMoments:
        """Return the moments among the weights of an `ObservationTransformer`."""
        return cls(**{each.name: weights[each.name] for each in fields(cls)})


class Block(nn.Module):
    """A layer of a transformer: attention among tokens (B, L, width) by a mask (L, L), then an MLP."""

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
        # Written out: the exporter turns the fused form into twice as many nodes, and the nodes are most of
        # the cost of a small network's step in ONNX Runtime.
        weights = (query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5 + mask).softmax(-1)
        tokens = tokens + self.attention_out((weights @ value).transpose(1, 2).flatten(2))
        return tokens + self.mlp(self.mlp_norm(tokens))


class ObservationTransformer(nn.Module):
    """Reads a window of observations and a goal; subclasses add heads.

    Args:
        sizes: of it.
        moments: of its inputs.
    """

    observation_mean: Tensor
    observation_scale: Tensor
    goal_mean: Tensor
    goal_scale: Tensor
    mask: Tensor

    def __init__(self, sizes: TransformerSizes, moments: InputMoments) -> None:
        super().__init__()
        goal_dim, width = sizes.goal_dim, sizes.width
        self._window_length = sizes.window_length
        self.observation_in = nn.Linear(sizes.observation_dim, width)
        self.goal_in = nn.Linear(goal_dim, width) if goal_dim else None
        length = bool(goal_dim) + sizes.window_length
        self.position = nn.Parameter(0.02 * torch.randn(length, width))
        causal = torch.full((length, length), float("-inf")).triu(1)
        self.register_buffer("mask", causal, persistent=False)
        self.blocks = nn.ModuleList(Block(width, sizes.heads) for _ in range(sizes.layers))
        self.final_norm = nn.LayerNorm(width)
        for name, value in vars(moments).items():
            self.register_buffer(name, value.float())

    @property
    def moments(self) -> InputMoments:
        """Moments of its inputs."""
        return InputMoments.among(dict(self.named_buffers()))

    def features(self, windows: Tensor, goals: Tensor) -> Tensor:
        """Return the features (B, H, width) at each observation of windows (B, H, O), for goals (B, G)."""
        windows, goals = self._normalized(windows, goals)
        tokens = self.observation_in(windows)
        if self.goal_in is not None:
            tokens = torch.cat([self.goal_in(goals)[:, None], tokens], dim=1)
        tokens = tokens + self.position
        for block in self.blocks:
            tokens = block(tokens, self.mask)
        features: Tensor = self.final_norm(tokens[:, -self._window_length :])
        return features

    def flattened(self, windows: Tensor, goals: Tensor) -> Tensor:
        """Return windows (B, H, O) and goals (B, G) as vectors (B, H * O + G), normalized."""
        windows, goals = self._normalized(windows, goals)
        read = windows.flatten(1)
        return read if self.goal_in is None else torch.cat([read, goals], dim=1)

    def _normalized(self, windows: Tensor, goals: Tensor) -> tuple[Tensor, Tensor]:
        read = (windows - self.observation_mean) / self.observation_scale
        return read, (goals - self.goal_mean) / self.goal_scale

    @property
    def parameters_count(self) -> int:
        """Number of trainable weights."""
        return sum(weight.numel() for weight in self.parameters())

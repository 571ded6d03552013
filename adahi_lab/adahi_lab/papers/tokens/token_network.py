# SPDX-License-Identifier: Apache-2.0
"""A causal transformer that emits a chunk of actions as tokens.

    p_1 ... p_P   goal     o_1  ...  o_H     x_1     x_2   ...  x_N-1      one position each
     └───────┴─────┴────────┴─────────┴───────┴───────┴──────────┘  causal
                                      └▶ x_1  └▶ x_2  └▶ x_3     └▶ x_N    a distribution over K tokens each

Patches of an image, if any, come first, so they depend on no instruction and no state: those of one image
serve every instruction.

One pass over known tokens gives the distribution of every next token, which verifies a draft. Token by
token, the keys and values of earlier positions come from a cache. Both are one function, `TokenNetwork`:
it reads embedded positions and the cache, and appends to it.

OpenVLA (Kim et al., arXiv 2406.09246): each entry of an action is one of 256 bins.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from adahi_lab.papers.tokens.patches import HALF, patches_of
from adahi_lab.papers.tokens.token_sizes import COLOURS, TokenConfig
from adahi_ros.policies.networks.transformer import Block, InputMoments

FIRST = 0.2  # standard deviation of the first positions and tokens
WAVES = 16  # by which the first weights of neighbouring tokens are alike


class CachedBlock(Block):
    """A layer of a transformer that reads the keys and values of earlier positions."""

    def attend(self, tokens: Tensor, past: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Add m positions.

        Args:
            tokens: (B, m, width).
            past: (B, 2, heads, P, width / heads), keys and values of P positions.
            mask: (m, P + m), added to the weights.

        Returns:
            (B, m, width), and the cache of P + m positions.
        """
        projected = self.query_key_value(self.attention_norm(tokens))
        query, new = projected.unflatten(-1, (3, self.heads, -1)).permute(0, 2, 3, 1, 4).split((1, 2), dim=1)
        present = torch.cat([past.to(new.dtype), new], dim=3)
        weights = query[:, 0] @ present[:, 0].transpose(-1, -2) * query.shape[-1] ** -0.5 + mask
        tokens = tokens + self.attention_out((weights.softmax(-1) @ present[:, 1]).transpose(1, 2).flatten(2))
        return tokens + self.mlp(self.mlp_norm(tokens)), present


class TokenNetwork(nn.Module):
    """The network.

    Args:
        config: its sizes.
        moments: of what it reads.
    """

    observation_mean: Tensor
    observation_scale: Tensor
    goal_mean: Tensor
    goal_scale: Tensor

    def __init__(self, config: TokenConfig, moments: InputMoments) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.observation_in = nn.Linear(config.state_dim, width)
        self.patch_in = _patch_layers(config) if config.patch else None
        self.goal_in = nn.Linear(config.goal_dim, width) if config.goal_dim else None
        self.code_in = nn.Embedding(config.codebook_size, width)
        self.position = nn.Parameter(FIRST * torch.randn(config.context + config.codebooks, width))
        self.blocks = nn.ModuleList(CachedBlock(width, config.heads) for _ in range(config.layers))
        self.final_norm = nn.LayerNorm(width)
        self.code_out = nn.Linear(width, config.codebook_size)
        waves = FIRST * _waves(config.codebook_size) @ torch.randn(2 * WAVES, width) * WAVES**-0.5
        with torch.no_grad():
            self.code_in.weight.copy_(waves)
            self.code_out.weight.copy_(waves * width**-0.5)
        for name, value in vars(moments).items():
            self.register_buffer(name, value.float())

    def embedded(self, windows: Tensor, goals: Tensor, codes: Tensor, pixels: Tensor | None = None) -> Tensor:
        """Return the positions (B, C + n, width) of what the network reads.

        Args:
            windows: (B, H, S), without the pixels of patches.
            goals: (B, G).
            codes: (B, n).
            pixels: (B, image_dim), from 0 to 255, where it reads patches.
        """
        parts = [self.observation_in((windows - self.observation_mean) / self.observation_scale)]
        if self.goal_in is not None:
            parts.insert(0, self.goal_in((goals - self.goal_mean) / self.goal_scale)[:, None])
        if self.patch_in is not None:
            assert pixels is not None
            parts.insert(0, self.patch_in(patches_of(pixels, self.config) / HALF - 1.0))
        parts.append(self.code_in(codes))
        tokens = torch.cat(parts, dim=1)
        return tokens + self.position[: tokens.shape[1]]

    def forward(self, embedded: Tensor, past: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Add m positions to a cache of P.

        Args:
            embedded: (B, m, width).
            past: (B, layers, 2, heads, P, width / heads).

        Returns:
            logits (B, m, K) of the next token at each position, hidden states (B, m, width) of the last
            layer, and the cache (B, layers, 2, heads, P + m, width / heads).
        """
        new, old = embedded.shape[1], past.shape[4]
        ahead = (
            torch.arange(old + new, device=embedded.device)
            - torch.arange(new, device=embedded.device)[:, None]
        )
        mask = torch.where(ahead > old, -torch.inf, 0.0)
        tokens, caches = embedded, []
        for layer, block in enumerate(self.blocks):
            assert isinstance(block, CachedBlock)
            tokens, cache = block.attend(tokens, past[:, layer], mask)
            caches.append(cache)
        hidden = self.final_norm(tokens)
        return self.code_out(hidden), hidden, torch.stack(caches, dim=1)

    def no_past(self, batch: int) -> Tensor:
        """Return the cache of no position."""
        config = self.config
        return torch.zeros(batch, config.layers, 2, config.heads, 0, config.width // config.heads)

    def logits(
        self, windows: Tensor, goals: Tensor, codes: Tensor, pixels: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the logits of every token of chunks (B, N), each from those before it, and hidden states.

        Arguments are those of `embedded`.

        Returns:
            logits (B, N, K), and (B, N, width) of the last layer.
        """
        embedded = self.embedded(windows, goals, codes[:, :-1], pixels)
        logits, hidden, _ = self(embedded, self.no_past(len(codes)))
        before = self.config.context - 1
        return logits[:, before:], hidden[:, before:]

    @property
    def parameters_count(self) -> int:
        """Number of trainable weights."""
        return sum(weight.numel() for weight in self.parameters())


def _patch_layers(config: TokenConfig) -> nn.Module:
    """Return the layers from the pixels of one patch to its position."""
    pixels, width = COLOURS * config.patch**2, config.width
    return nn.Sequential(nn.Linear(pixels, width), nn.ReLU(), nn.Linear(width, width))


def _waves(size: int) -> Tensor:
    """Return smooth features (K, 2 WAVES) of bins: neighbours begin alike, as their actions are."""
    angles = torch.arange(size)[:, None] / size * math.pi * (torch.arange(WAVES) + 1)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)

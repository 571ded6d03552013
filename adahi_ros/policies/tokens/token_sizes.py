# SPDX-License-Identifier: Apache-2.0
"""Sizes of a token policy's network, and the resulting shapes of weights."""

from __future__ import annotations

from dataclasses import dataclass

from adahi_ros.core.tensor_files import Shapes
from adahi_ros.policies.networks.network_checkpoint import Length, Size, SizeOrNone, TransformerSizes


@dataclass(frozen=True)
class TokenConfig(TransformerSizes):
    """Sizes of a token policy. Draft and target differ in `width`, `layers` and `heads`.

    Attributes:
        observation_dim, goal_dim, action_dim: O, G and A.
        window_length: H, observations that it reads.
        codebooks: N, tokens of a chunk.
        codebook_size: K, the vocabulary.
        width, layers, heads: of the transformer.
        image_dim: see `observed_features`.
    """

    observation_dim: Size
    goal_dim: SizeOrNone
    action_dim: Size
    window_length: Length
    codebooks: Size
    codebook_size: Size
    width: Size = 128
    layers: Size = 4
    heads: Size = 4
    image_dim: SizeOrNone = 0

    @property
    def context(self) -> int:
        """C, positions before the first token: a goal, if any, and the window."""
        return bool(self.goal_dim) + self.window_length

    def shapes(self) -> Shapes:
        """See `NetworkSizes`."""
        return {
            **super().shapes(),
            "position": (self.context + self.codebooks, self.width),
            "code_in.weight": (self.codebook_size, self.width),
            "code_out.weight": (self.codebook_size, self.width),
        }

# SPDX-License-Identifier: Apache-2.0
"""Sizes of a VQ-BeT and of its action tokenizer, and the resulting shapes of weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from adahi_ros.core.tensor_files import Shapes
from adahi_ros.policies.networks.network_checkpoint import (
    Length,
    NetworkSizes,
    Size,
    SizeOrNone,
    TransformerSizes,
)
from adahi_ros.policies.vqbet.code_policy import MAX_COMBINATIONS


@dataclass(frozen=True)
class VQBeTConfig(TransformerSizes):
    """Sizes of a VQ-BeT. Draft and target differ in `width`, `layers`, `heads` and `head_hidden`.

    Attributes:
        offset_hidden: units of each of the two layers of an offset network of its own, which reads the window
            and the goal; 0 for a head on the transformer's features.
    """

    observation_dim: Size
    goal_dim: SizeOrNone
    action_dim: Size
    window_length: Length
    chunk_length: Size
    codebooks: Size
    codebook_size: Size
    width: Size = 120
    layers: Size = 6
    heads: Size = 6
    head_hidden: Size = 256
    image_dim: SizeOrNone = 0
    offset_hidden: SizeOrNone = 0

    @property
    def read(self) -> int:
        """Number of entries of a window and its goal."""
        return self.window_length * self.observation_dim + self.goal_dim

    def shapes(self) -> Shapes:
        """See `NetworkSizes`."""
        codes, hidden, own = self.codebooks * self.codebook_size, self.head_hidden, self.offset_hidden
        offsets = codes * self.chunk_length * self.action_dim
        return {
            **super().shapes(),
            "action_scale": (self.action_dim,),
            "code_head.0.weight": (hidden, self.width),
            "code_head.2.weight": (codes, hidden),
            **({"offset_head.0.weight": (own, self.read)} if own else {}),
            f"offset_head.{4 if own else 2}.weight": (offsets, own or hidden),
        }


@dataclass(frozen=True)
class TokenizerConfig(NetworkSizes):
    """Sizes of an action tokenizer."""

    layered: ClassVar = {"codebooks": ("quantizer.layers.", "._codebook.embed")}

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

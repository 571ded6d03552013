# SPDX-License-Identifier: Apache-2.0
"""Sizes of a VQ-BeT, and the resulting shapes of weights."""

from __future__ import annotations

from dataclasses import dataclass

from adahi_ros.core.tensor_files import Shapes
from adahi_ros.policies.networks.network_checkpoint import Length, Size, SizeOrNone, TransformerSizes


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

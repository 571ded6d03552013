# SPDX-License-Identifier: Apache-2.0
"""No encoder: a frame's features are its pixels, for a policy that reads patches of them."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Pixels(nn.Module):
    """Frames (B, H, W, 3) uint8 to features (B, 3 H W), from 0 to 255.

    Args:
        image_size: rows and columns.
    """

    largest: Tensor

    def __init__(self, image_size: tuple[int, int]) -> None:
        super().__init__()
        self.features = 3 * image_size[0] * image_size[1]
        self.register_buffer("largest", torch.full((1,), 255.0))  # a file of weights needs one

    def forward(self, images: Tensor) -> Tensor:
        return torch.minimum(images.flatten(1).float(), self.largest)

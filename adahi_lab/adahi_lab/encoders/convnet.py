# SPDX-License-Identifier: Apache-2.0
"""A small convolutional network that locates objects in a frame.

Each channel of the last layer becomes a spatial softmax, and its mean place a keypoint (Levine et al.,
"End-to-End Training of Deep Visuomotor Policies", 2016; Finn et al., "Deep Spatial Autoencoders", 2016).
Two numbers per keypoint locate it to a fraction of a pixel.

A map that has learned to single out one pixel permanently has no gradient any more: its keypoint is dead, a
constant number. Many die early in training. Normalised over each frame before the softmax
(instance normalisation; Ulyanov et al., arXiv 1607.08022), a map cannot grow so large.
"""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SHARPNESS = 2.0  # of normalised maps, at the start of training


class KeypointNet(nn.Module):
    """Frames (B, H, W, 3) uint8 to keypoints (B, 2 K), x right and y down, -1 to 1 across the frame.

    Args:
        image_size: rows and columns.
        channels: of the hidden layers.
        layers: convolutions after the first one, which halves the resolution.
        keypoints: K.
        normalised: normalise each map over each frame.

    Raises:
        ValueError: a size is out of range; names field, value and range.
    """

    grid: Tensor

    def __init__(
        self,
        image_size: tuple[int, int],
        channels: int = 16,
        layers: int = 2,
        keypoints: int = 8,
        normalised: bool = False,
    ) -> None:
        super().__init__()
        for name, value in (("channels", channels), ("layers", layers), ("keypoints", keypoints)):
            if value < 1:
                raise ValueError(f"size.{name}: {value}, must be at least 1")
        self.features = 2 * keypoints
        widths = [channels] * layers + [keypoints]
        maps: list[nn.Module] = [nn.Conv2d(3, channels, 5, stride=2, padding=2)]
        for fan_in, fan_out in pairwise(widths):
            maps += [nn.ReLU(), nn.Conv2d(fan_in, fan_out, 3, padding=1)]
        self.maps = nn.Sequential(*maps)
        self.sharpness = nn.Parameter(torch.zeros(keypoints, 1) if normalised else torch.ones(()))
        self.normalised = normalised
        rows, columns = ((size + 1) // 2 for size in image_size)
        x = torch.linspace(-1.0, 1.0, columns).repeat(rows)
        y = torch.linspace(-1.0, 1.0, rows).repeat_interleave(columns)
        self.register_buffer("grid", torch.stack([x, y], dim=1), persistent=False)

    def maps_of(self, images: Tensor) -> Tensor:
        """Return the maps (B, K, rows, columns) of frames."""
        maps: Tensor = self.maps(images.permute(0, 3, 1, 2).float() / 127.5 - 1.0)
        return maps

    def attention(self, maps: Tensor) -> Tensor:
        """Return the attention of each keypoint, (B, K, rows * columns), from maps."""
        sharpness: Tensor = self.sharpness
        if self.normalised:
            maps, sharpness = F.instance_norm(maps), SHARPNESS * sharpness.exp()
        return (sharpness * maps.flatten(2)).softmax(-1)

    def forward(self, images: Tensor) -> Tensor:
        return (self.attention(self.maps_of(images)) @ self.grid).flatten(1)

# SPDX-License-Identifier: Apache-2.0
"""Layers of ResNets (He et al., 2016) up to their last maps; in blocks, weights have torchvision's names."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

BLOCKS = {"resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3)}
"""By name, the number of blocks of each width."""
WIDTHS = (64, 128, 256, 512)
Norm = Callable[[int], nn.Module]
"""Makes the normalisation of a number of channels."""


class _BasicBlock(nn.Module):
    def __init__(self, fan_in: int, fan_out: int, stride: int, norm: Norm) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(fan_in, fan_out, 3, stride, padding=1, bias=False)
        self.bn1 = norm(fan_out)
        self.conv2 = nn.Conv2d(fan_out, fan_out, 3, padding=1, bias=False)
        self.bn2 = norm(fan_out)
        self.downsample = None
        if stride != 1 or fan_in != fan_out:
            self.downsample = nn.Sequential(nn.Conv2d(fan_in, fan_out, 1, stride, bias=False), norm(fan_out))

    def forward(self, maps: Tensor) -> Tensor:
        past = maps if self.downsample is None else self.downsample(maps)
        maps = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(maps)))))
        return F.relu(maps + past)


def resnet_layers(blocks: tuple[int, ...], norm: Norm) -> list[nn.Module]:
    """Return the layers from frames (B, 3, H, W) to maps (B, 512, H / 32, W / 32), one after the other.

    Args:
        blocks: of each width, a value of `BLOCKS`.
        norm: of each convolution.
    """
    layers: list[nn.Module] = [
        nn.Conv2d(3, WIDTHS[0], 7, stride=2, padding=3, bias=False),
        norm(WIDTHS[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    fan_in = WIDTHS[0]
    for count, width in zip(blocks, WIDTHS, strict=True):
        first = _BasicBlock(fan_in, width, 1 if width == WIDTHS[0] else 2, norm)
        layers.append(nn.Sequential(first, *(_BasicBlock(width, width, 1, norm) for _ in range(count - 1))))
        fan_in = width
    return layers

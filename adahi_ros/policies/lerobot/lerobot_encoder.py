# SPDX-License-Identifier: Apache-2.0
"""The eye of a LeRobot VQ-BeT: a ResNet and a spatial softmax, from frames to features.

LeRobot trains it with the policy. Here it is a frozen encoder of its own, to be written as every other:
features are computed where the camera is, and an observation is [state | features].
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from adahi_ros.core.checkpoint_files import CheckpointError, check_shapes
from adahi_ros.policies.lerobot.lerobot_checkpoint import WEIGHTS, LeRobotCheckpoint, read_checkpoint
from adahi_ros.policies.lerobot.lerobot_files import CONFIG

PART = "rgb_encoder"
BLOCKS = {"resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3)}
WIDTHS = (64, 128, 256, 512)
STRIDE = 32  # of the last maps, in pixels
CHANNELS_PER_GROUP = 16

Norm = Callable[[int], nn.Module]


def _group_norm(channels: int) -> nn.Module:
    return nn.GroupNorm(channels // CHANNELS_PER_GROUP, channels)


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


def _backbone(blocks: tuple[int, ...], norm: Norm) -> nn.Sequential:
    """Build a ResNet up to its last maps, with LeRobot's names for the weights: numbers, in a row."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, WIDTHS[0], 7, stride=2, padding=3, bias=False),
        norm(WIDTHS[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    fan_in = WIDTHS[0]
    for count, width in zip(blocks, WIDTHS, strict=True):
        strides = (1 if width == WIDTHS[0] else 2, *[1] * (count - 1))
        fans = (fan_in, *[width] * (count - 1))
        layers.append(
            nn.Sequential(
                *(_BasicBlock(fan, width, stride, norm) for fan, stride in zip(fans, strides, strict=True))
            )
        )
        fan_in = width
    return nn.Sequential(*layers)


class _SpatialSoftmax(nn.Module):
    """Maps (B, C, h, w) to the mean place (B, K, 2) of each of K keypoints, x right and y down, -1 to 1."""

    pos_grid: Tensor

    def __init__(self, channels: int, keypoints: int, cells: int) -> None:
        super().__init__()
        self.nets = nn.Conv2d(channels, keypoints, 1)
        self.register_buffer("pos_grid", torch.zeros(cells, 2))

    def forward(self, maps: Tensor) -> Tensor:
        return self.nets(maps).flatten(2).softmax(-1) @ self.pos_grid


class RgbEncoder(nn.Module):
    """Frames (B, H, W, 3) uint8 to features (B, F) float32, as LeRobot's `VQBeTRgbEncoder` in evaluation.

    Attributes:
        features: F.
        config: what it is, as encoders describe themselves; `image_size` is that before the crop.

    Args:
        checkpoint: of the policy that it is part of.

    Raises:
        CheckpointError: it is of another kind, or its weights do not fit.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, checkpoint: LeRobotCheckpoint) -> None:
        super().__init__()
        config = checkpoint.config
        name = config.get("vision_backbone")
        if name not in BLOCKS:
            raise CheckpointError(
                f"{checkpoint.folder / CONFIG}: vision_backbone: {name!r}, must be of {', '.join(BLOCKS)}"
            )
        keypoints = config["spatial_softmax_num_keypoints"]
        self.features = 2 * keypoints
        rows, columns = checkpoint.image_size
        crop_rows, crop_columns = config.get("crop_shape") or checkpoint.image_size
        self.config = {
            "architecture": f"lerobot_{name}",
            "image_size": [rows, columns],
            "crop": [crop_rows, crop_columns],
            "group_norm": config["use_group_norm"],
            "keypoints": keypoints,
            "bias": checkpoint.image_scaling.bias,
        }
        top, left = (
            round((rows - crop_rows) / 2),
            round((columns - crop_columns) / 2),
        )  # as torchvision rounds
        self._crop = (slice(top, top + crop_rows), slice(left, left + crop_columns))
        cells = -(-crop_rows // STRIDE) * -(-crop_columns // STRIDE)
        part = checkpoint.part(PART)
        try:
            check_shapes(
                {name: tuple(value.shape) for name, value in part.items()},
                {"out.weight": (self.features, self.features), "pool.pos_grid": (cells, 2)},
            )
        except ValueError as error:
            raise CheckpointError(f"{checkpoint.folder / WEIGHTS}: {PART}: {error}") from None
        norm: Norm = _group_norm if config["use_group_norm"] else nn.BatchNorm2d
        self.backbone = _backbone(BLOCKS[name], norm)
        self.pool = _SpatialSoftmax(WIDTHS[-1], keypoints, cells)
        self.out = nn.Linear(self.features, self.features)
        try:
            self.load_state_dict(part)
        except RuntimeError as error:
            fault = " ".join(str(error).split())
            raise CheckpointError(f"{checkpoint.folder / WEIGHTS}: {PART}: {fault}") from None
        scaling = checkpoint.image_scaling
        self.bias = scaling.bias
        self.register_buffer("shift", scaling.shift)
        self.register_buffer("scale", scaling.scale)
        self.eval().requires_grad_(False)

    def forward(self, images: Tensor) -> Tensor:
        frames = images[:, self._crop[0], self._crop[1]].permute(0, 3, 1, 2).float() / 255.0
        maps = self.backbone((frames - self.shift) / self.scale + self.bias)
        return F.relu(self.out(self.pool(maps).flatten(1)))


def load_encoder(folder: Path) -> RgbEncoder:
    """Read the encoder of a LeRobot policy, for `adahi_ros.vision.encoder_export.save_encoder`.

    Raises:
        CheckpointError: as `read_checkpoint` and `RgbEncoder`.
    """
    return RgbEncoder(read_checkpoint(folder))

# SPDX-License-Identifier: Apache-2.0
"""The image encoder of a LeRobot VQ-BeT: a ResNet and a spatial softmax, from frames to features.

LeRobot trains it with the policy. Here it is a separate frozen encoder, stored like every other:
features are computed at the camera, and an observation is [state | features].
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from adahi_lab.encoders.resnet_layers import BLOCKS, WIDTHS, Norm, resnet_layers
from adahi_lab.lerobot.lerobot_checkpoint import WEIGHTS, LeRobotCheckpoint, read_checkpoint
from adahi_lab.lerobot.lerobot_files import CONFIG
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.tensor_files import check_shapes

PART = "rgb_encoder"
STRIDE = 32  # of the last maps, in pixels
CHANNELS_PER_GROUP = 16


def _group_norm(channels: int) -> nn.Module:
    return nn.GroupNorm(channels // CHANNELS_PER_GROUP, channels)


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
        config: its description, as of every encoder; `image_size` is before the crop.

    Args:
        checkpoint: of its policy.

    Raises:
        CheckpointError: its kind is not supported, or its weights do not fit.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, checkpoint: LeRobotCheckpoint) -> None:
        super().__init__()
        config = checkpoint.config
        name = config.vision_backbone
        if name not in BLOCKS:
            raise CheckpointError(
                f"{checkpoint.folder / CONFIG}: vision_backbone: {name!r}, must be of {', '.join(BLOCKS)}"
            )
        keypoints = config.spatial_softmax_num_keypoints
        self.features = 2 * keypoints
        rows, columns = config.input_features[config.camera].shape[1:]
        crop_rows, crop_columns = config.crop_shape or (rows, columns)
        self.config = {
            "architecture": f"lerobot_{name}",
            "image_size": [rows, columns],
            "crop": [crop_rows, crop_columns],
            "group_norm": config.use_group_norm,
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
        norm: Norm = _group_norm if config.use_group_norm else nn.BatchNorm2d
        self.backbone = nn.Sequential(*resnet_layers(BLOCKS[name], norm))
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
    """Read the encoder of a LeRobot policy, for `adahi_lab.encoders.encoder_export.save_encoder`.

    Raises:
        CheckpointError: as `read_checkpoint` and `RgbEncoder`.
    """
    return RgbEncoder(read_checkpoint(folder))

# SPDX-License-Identifier: Apache-2.0
"""Exports an encoder of keypoints in two parts: one for patches, and one for their maps."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from adahi_ros.policies.networks.onnx_export import write_onnx
from adahi_ros.vision.convnet import KeypointNet
from adahi_ros.vision.encoder import EncoderFiles
from adahi_ros.vision.encoder_export import make_network
from adahi_ros.vision.resnet import load_weights


class _Maps(nn.Module):
    def __init__(self, network: KeypointNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        return self.network.maps_of(images)


class _Head(nn.Module):
    """From maps (1, K, R, C) to features, and the share of each keypoint's attention in each patch."""

    def __init__(self, network: KeypointNet, cells: int) -> None:
        super().__init__()
        self.network = network
        self.cells = cells

    def forward(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        attention = self.network.attention(maps)
        looked = F.avg_pool2d(attention.unflatten(-1, maps.shape[2:]), self.cells) * self.cells**2
        return (attention @ self.network.grid).flatten(1), looked


def _network(files: EncoderFiles) -> KeypointNet:
    network = make_network(files.config)
    assert isinstance(network, KeypointNet)
    load_weights(network, str(files.weights))
    return network.eval()


def export_maps(files: EncoderFiles, path: Path) -> None:
    """Write the convolutions of an encoder, for frames (1, H, W, 3) of any even size."""
    rows, columns = torch.export.Dim("half_rows", min=2), torch.export.Dim("half_columns", min=2)
    write_onnx(
        _Maps(_network(files)),
        (torch.zeros(1, *files.image_size, 3, dtype=torch.uint8),),
        path,
        files.digest(),
        input_names=["images"],
        output_names=["maps"],
        dynamic_shapes=({1: 2 * rows, 2: 2 * columns},),
    )


def export_head(files: EncoderFiles, path: Path, cells: int) -> None:
    """Write the part from maps to features, which also returns each keypoint's share in each patch.

    Args:
        files: of the encoder.
        path: of the file to write.
        cells: rows, and columns, of a patch in the maps.
    """
    network = _network(files)
    rows, columns = (side // 2 for side in files.image_size)
    maps = torch.zeros(1, network.features // 2, rows, columns)
    names = {"input_names": ["maps"], "output_names": ["features", "looked"]}
    write_onnx(_Head(network, cells), (maps,), path, files.digest(), **names)

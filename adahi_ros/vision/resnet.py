# SPDX-License-Identifier: Apache-2.0
"""ResNet-18 (He et al., 2016) with torchvision's names for its weights, and without torchvision.

Weights trained on ImageNet come from a local safetensors file, or from the Hugging Face hub where its
client is installed and there is internet.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from adahi_ros.core.checkpoint_files import UNREADABLE
from adahi_ros.core.files import LARGEST_WEIGHTS, check_size

HUB = "hf://"
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_SCALE = (0.229, 0.224, 0.225)
CLASSIFIER = ("fc.weight", "fc.bias")  # the features are what comes before


class _BasicBlock(nn.Module):
    def __init__(self, fan_in: int, fan_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(fan_in, fan_out, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(fan_out)
        self.conv2 = nn.Conv2d(fan_out, fan_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(fan_out)
        self.downsample = None
        if stride != 1 or fan_in != fan_out:
            self.downsample = nn.Sequential(
                nn.Conv2d(fan_in, fan_out, 1, stride, bias=False), nn.BatchNorm2d(fan_out)
            )

    def forward(self, maps: Tensor) -> Tensor:
        past = maps if self.downsample is None else self.downsample(maps)
        maps = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(maps)))))
        return F.relu(maps + past)


class ResNet18(nn.Module):
    """Frames (B, H, W, 3) uint8 to what ResNet-18 shows its classifier, (B, 512).

    Args:
        image_size: rows and columns; any will do.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, image_size: tuple[int, int]) -> None:
        super().__init__()
        self.features = 512
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(_BasicBlock(64, 64, 1), _BasicBlock(64, 64, 1))
        self.layer2 = nn.Sequential(_BasicBlock(64, 128, 2), _BasicBlock(128, 128, 1))
        self.layer3 = nn.Sequential(_BasicBlock(128, 256, 2), _BasicBlock(256, 256, 1))
        self.layer4 = nn.Sequential(_BasicBlock(256, 512, 2), _BasicBlock(512, 512, 1))
        self.register_buffer("mean", torch.tensor(IMAGENET_MEAN)[:, None, None], persistent=False)
        self.register_buffer("scale", torch.tensor(IMAGENET_SCALE)[:, None, None], persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        frames = (images.permute(0, 3, 1, 2).float() / 255.0 - self.mean) / self.scale
        maps = F.max_pool2d(F.relu(self.bn1(self.conv1(frames))), 3, stride=2, padding=1)
        maps = self.layer4(self.layer3(self.layer2(self.layer1(maps))))
        return maps.mean(dim=(2, 3))


def load_weights(network: nn.Module, source: str) -> None:
    """Fill a network with the weights of a safetensors file; a ResNet's classifier is left out.

    Args:
        network: takes the weights by their names.
        source: a path, or hf://OWNER/REPOSITORY/FILE of the Hugging Face hub.

    Raises:
        FileNotFoundError: no such file.
        ValueError: the file is not of this network; the message says why.
        RuntimeError: the hub cannot be asked from here.
    """
    path = _from_hub(source) if source.startswith(HUB) else Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"weights: {source}: no such file")
    try:
        check_size(path, LARGEST_WEIGHTS)
        tensors = load_file(path)
        network.load_state_dict({name: value for name, value in tensors.items() if name not in CLASSIFIER})
    except UNREADABLE as error:
        fault = " ".join(str(error).split())
        raise ValueError(f"weights: {source}, must be a safetensors file of this network ({fault})") from None


def _from_hub(source: str) -> Path:
    owner, _, rest = source.removeprefix(HUB).partition("/")
    repository, _, name = rest.partition("/")
    if not (owner and repository and name):
        raise ValueError(f"weights: {source}, must be {HUB}OWNER/REPOSITORY/FILE")
    try:
        hub = import_module("huggingface_hub")
    except ImportError:
        raise RuntimeError(
            f"weights: {source}: needs 'pip install huggingface_hub', or a local file in its place"
        ) from None
    try:
        return Path(hub.hf_hub_download(f"{owner}/{repository}", name))
    except (OSError, ValueError) as error:  # what the hub's own errors are
        fault = " ".join(str(error).split())
        raise RuntimeError(
            f"weights: {source}: the hub did not give it ({fault}); use a local file"
        ) from None
